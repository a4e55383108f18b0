"""Cases about the end of an event. An event that has ended is no longer in the document."""

from fairwarning.handler_check.case_api import CaseRun
from fairwarning.handler_check.cases.registry import case
from fairwarning.handler_check.fleet import NEIGHBOUR

_STOPPED_POLLS = 2  # The handler has read the document without the event, and polled again.
_SILENCE_H = 30.0  # More than the 24 hours after which a scope is switched off.
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
    run.tell("the event is cancelled and gone from the document")
    run.observed.wait_polls(_STOPPED_POLLS)
    before = run.observed.approvals(event.id)
    run.must_keep_polling()
    after = run.observed.approvals(event.id)
    run.must(
        "stop approving an event that is gone",
        after == before,
        "it did" if after == before else f"it approved {after - before} times more",
    )
    run.must_undo(event)


@case(
    "own-reboot",
    "the handler dies in the reboot that it prepared for, and comes back when it is over",
    why="handlers that keep what they did in memory forget to undo it after their own reboot",
)
def own_reboot(run: CaseRun) -> None:
    event = run.announce("Reboot")
    run.must_handle(event)
    run.observed.wait_polls(1)
    run.finish(event)
    run.restart_handler()
    run.must_undo(event)
    run.must_keep_polling()


@case(
    "incarnation-reset",
    "a day without a poll: the service forgets the scope and counts its documents from 1 again",
    why="handlers that take a lower DocumentIncarnation for old news ignore all that follows",
    begins_h=-_SILENCE_H,
)
def incarnation_reset(run: CaseRun) -> None:
    for _ in range(_FAILURES):
        # These have started already, so that a handler that approves for others changes nothing.
        run.finish(run.announce("Reboot", NEIGHBOUR, already_happened=True))
    run.observed.wait_polls(2)
    run.server.advance(hours=_SILENCE_H)
    run.tell("more than a day passes; DocumentIncarnation begins at 1 again")
    run.observed.wait_polls(2)
    run.must_handle(run.announce("Reboot"))
