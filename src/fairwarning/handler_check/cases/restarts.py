"""Cases about a handler that is killed and started again, at each stage of an event."""

from fairwarning.handler_check.case_api import CaseRun
from fairwarning.handler_check.cases.registry import case
from fairwarning.handler_check.observations import UNDO


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
    "killed-drained",
    "the handler is killed after it has prepared, before its approval is taken",
    why="handlers that remember what they drained, and not whether they approved, wait for the "
    "end of the notice",
)
def killed_drained(run: CaseRun) -> None:
    with run.server.fault("status", run.vm, on="approve", status=503):
        event = run.announce("Reboot")
        run.tell("approvals are answered with 503")
        run.observed.wait(lambda: run.observed.has_acted_on(event.id))
        run.restart_handler()
        # A fast handler approves as soon as the fault is cleared, so the mark comes before that.
        mark = run.observed.mark()
    run.tell("approvals are taken again")
    run.must_handle(event, since=mark)


@case(
    "killed-started",
    "the handler is killed and comes back while the event is Started",
    why="handlers that undo whatever they find at their start end the drain in the middle of the "
    "event",
)
def killed_started(run: CaseRun) -> None:
    event = run.announce("Reboot", duration="30m")
    run.must_handle(event)
    run.observed.wait_polls(1)
    run.start_now(event)
    run.restart_handler()
    run.observed.wait_polls(2)
    run.must_stay_drained(event, "the event is still there")
    run.finish(event)
    run.must_undo(event)


@case(
    "killed-after",
    "the handler is killed after it has undone everything, and then there is another event",
    why="handlers that never forget an event undo it again at each start, or take the next one "
    "for it",
)
def killed_after(run: CaseRun) -> None:
    event = run.announce("Reboot")
    run.must_handle(event)
    run.observed.wait_polls(1)
    run.finish(event)
    run.must_undo(event)
    run.restart_handler()
    run.observed.wait_polls(2)
    times = run.observed.log.count(UNDO, event.id)
    did = f"it wrote `undo` {times} times" if times > 1 else "it did not"
    run.must("not undo it again", times <= 1, did, event)
    run.must_handle(run.announce("Reboot"))
