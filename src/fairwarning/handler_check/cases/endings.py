"""Cases about the end of an event. An event that has ended is no longer in the document."""

from fairwarning.handler_check.case_api import CaseRun
from fairwarning.handler_check.cases.registry import case

_STOPPED_POLLS = 2  # The handler has read the document without the event, and polled again.
_SILENCE_H = 30.0  # More than the 24 hours after which a scope is switched off.
_TENTH = 10  # As text, it is less than 9.
_FAILURES = 3  # One retry is not enough, and more only take time.


@case(
    "completed",
    "a reboot that is approved, happens and is over",
    why="handlers that never undo leave nodes cordoned (aks-node-termination-handler#43)",
)
def completed(run: CaseRun) -> None:
    event = run.announce("Reboot")
    run.must_handle(event)
    run.finish(event)
    run.must_undo(event)
    run.must_keep_polling()


@case(
    "cancelled",
    "a reboot that is cancelled, after the handler has prepared for it",
    why="handlers that wait for Started only never undo what a cancelled event made them do",
)
def cancelled(run: CaseRun) -> None:
    # Approvals fail, so that a fast handler cannot start the event before it is cancelled.
    with run.server.fault("status", run.vm, on="approve", status=503):
        event = run.announce("Reboot")
        run.tell("approvals are answered with 503")
        run.observed.wait(lambda: run.observed.has_acted_on(event.id))
        run.server.cancel(event)
    mark = run.observed.mark()
    run.tell("the event is cancelled and gone from the document")
    run.must_keep_polling()
    run.observed.wait_polls(_STOPPED_POLLS)
    more = run.observed.approvals_after_polls(event.id, _STOPPED_POLLS, since=mark)
    did = f"it approved {more} times more" if more else "it did"
    run.must("stop approving an event that is gone", not more, did, event)
    run.must_undo(event)


@case(
    "incarnation-reset",
    "a day without a poll: the service forgets the scope and counts its documents from 1 again",
    why="handlers that take a lower DocumentIncarnation for old news ignore all that follows",
    begins_h=-_SILENCE_H,
)
def incarnation_reset(run: CaseRun) -> None:
    for _ in range(_FAILURES):
        # These have started already, so that a handler that approves for others changes nothing.
        run.finish(run.announce("Reboot", run.neighbour, already_happened=True))
    run.observed.wait_polls(2)
    run.server.advance(hours=_SILENCE_H)
    run.tell("more than a day passes; DocumentIncarnation begins at 1 again")
    run.observed.wait_polls(2)
    run.must_handle(run.announce("Reboot"))


@case(
    "tenth-document",
    f"an event in document {_TENTH}, after document {_TENTH - 1}",
    why=f"handlers that compare incarnations as text take {_TENTH} for less than {_TENTH - 1}, and "
    "ignore it as old",
)
def tenth_document(run: CaseRun) -> None:
    # These have started already, so that a handler that approves for others changes nothing.
    failure = run.announce("Reboot", run.neighbour, already_happened=True)
    while _incarnation(run) < _TENTH - 1:
        if run.server.event(failure).phase == "started":
            run.finish(failure)
        else:
            failure = run.announce("Reboot", run.neighbour, already_happened=True)
    run.tell(f"DocumentIncarnation is {_incarnation(run)}")
    run.observed.wait_polls(2)
    run.must_handle(run.announce("Reboot"))


def _incarnation(run: CaseRun) -> int:
    found: int = run.as_neighbour().document()["DocumentIncarnation"]
    return found
