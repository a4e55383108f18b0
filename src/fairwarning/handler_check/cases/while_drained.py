"""Cases about bad answers in the middle of an event, when an undo would do the most harm.

In each case the handler has prepared for an event that has started. Then the endpoint answers
badly for a few polls, and then well again. The event is there all the time.
"""

from collections.abc import Callable
from typing import Any

from fairwarning.handler_check.case_api import CaseRun
from fairwarning.handler_check.cases.registry import case
from fairwarning.operator_api.schemas import Event

_BAD_POLLS = 2  # A handler that believes a bad answer does so at the first one or at the next.
_STALE_AFTER_MIN = 20  # The event has started by then, and is not over.
_OUTAGE_S = 3.0
"""How long connections are refused at least. Polls that never arrive cannot be counted."""


def _through(run: CaseRun, disturb: Callable[[Event], None], why: str) -> None:
    """Require that the handler stays drained while `disturb` disturbs it, and undoes afterwards."""
    event = run.announce("Reboot", duration="30m")
    run.must_handle(event)
    run.observed.wait_polls(1)
    run.start_now(event)
    run.tell("it is Started")
    run.observed.wait_polls(2)
    disturb(event)
    run.server.clear_faults()
    run.observed.wait_polls(2)
    run.must_stay_drained(event, why)
    run.finish(event)
    run.must_undo(event)
    run.must_keep_polling()


def _faults(run: CaseRun, *faults: dict[str, Any]) -> Callable[[Event], None]:
    """Return a function that sets the faults, and waits until the handler has met all of them."""

    def disturb(_: Event) -> None:
        mark = run.observed.mark()
        for each in faults:
            run.server.fault(instances=run.vm, **each)
        polls = sum(each["count"] for each in faults)
        # The next poll after the bad ones shows that the handler has read them.
        run.observed.wait(lambda: run.observed.polls(since=mark) > polls)

    return disturb


@case(
    "drained-empty",
    "200 with an empty body, twice, while the event is Started",
    why="handlers that take an empty answer for one without events undo in the middle of the event",
)
def drained_empty(run: CaseRun) -> None:
    fault = {"kind": "empty", "count": _BAD_POLLS}
    _through(run, _faults(run, fault), "an empty answer says nothing")


@case(
    "drained-errors",
    "500, 503, 410 and 429 while the event is Started",
    why="the endpoint is away while its host is updated, and this is no end of the event",
)
def drained_errors(run: CaseRun) -> None:
    faults = [{"kind": "status", "status": each, "count": 1} for each in (500, 503, 410, 429)]
    _through(run, _faults(run, *faults), "an error says nothing of events")


@case(
    "drained-cut",
    "connections that are cut while the event is Started",
    why="handlers that begin anew after an error of the network forget what they prepared for",
)
def drained_cut(run: CaseRun) -> None:
    fault = {"kind": "reset", "count": _BAD_POLLS}
    _through(run, _faults(run, fault), "a cut connection says nothing")


@case(
    "drained-refused",
    "connections that are refused while the event is Started",
    why="handlers that take a closed port for the end of the service undo, or end themselves",
)
def drained_refused(run: CaseRun) -> None:
    def disturb(_: Event) -> None:
        with run.server.unreachable():
            # It is long enough for two polls of this handler.
            outage_s = max(_OUTAGE_S, 2 * max(run.observed.poll_pauses_s(), default=0))
            run.tell(f"connections are refused for {outage_s:.0f} seconds")
            run.observed.wait(lambda: False, within_s=outage_s)

    _through(run, disturb, "a refused connection says nothing")


@case(
    "drained-slow",
    "answers that take three seconds, or come in small pieces, while the event is Started",
    why="handlers that take a late answer for none forget what they prepared for",
)
def drained_slow(run: CaseRun) -> None:
    slow = {"kind": "slow", "delay": "3s", "count": 1}
    in_pieces = {"kind": "slow-body", "delay": "2s", "count": 1}
    _through(run, _faults(run, slow, in_pieces), "a late answer is an answer")


@case(
    "drained-stale",
    "documents from before the event, with a lower incarnation, while the event is Started",
    why="a cache or a node that lags behind hands out an old document; handlers that believe it "
    "undo in the middle of the event",
)
def drained_stale(run: CaseRun) -> None:
    # A stale document is the one of the moment at which the fault is set, which is before the
    # event. It is handed out later, when the case moves the clock.
    run.server.fault("stale", run.vm, count=_BAD_POLLS, after=f"{_STALE_AFTER_MIN}m")

    def disturb(_: Event) -> None:
        mark = run.observed.mark()
        run.server.advance(minutes=_STALE_AFTER_MIN)
        run.tell("two polls are answered with the document from before the event")
        run.observed.wait(lambda: run.observed.polls(since=mark) > _BAD_POLLS)

    _through(run, disturb, "a document with a lower incarnation is an old one")


@case(
    "drained-lower",
    "documents with the incarnation 1 and the same event, while it is Started",
    why="handlers that begin anew with a lower incarnation prepare again, or undo first",
)
def drained_lower(run: CaseRun) -> None:
    prepared: list[Event] = []

    def disturb(event: Event) -> None:
        prepared.append(event)
        _faults(run, {"kind": "incarnation-reset", "count": _BAD_POLLS})(event)

    _through(run, disturb, "the event is in the document")
    for event in prepared:
        run.must_prepare_once(event)
