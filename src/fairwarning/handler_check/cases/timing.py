"""Cases about events that are days ahead, half a minute ahead, two at once, or started."""

from fairwarning.handler_check.case_api import CaseRun
from fairwarning.handler_check.cases.registry import case
from fairwarning.handler_check.fleet import MEMBER, is_member
from fairwarning.handler_check.observations import UNDO

PREEMPT_S = 25.0
"""The time left of the 30 seconds of notice if the event comes just after a poll."""
_CLOCK_H = 3.0
"""How wrong the VM's clock is. It is more than the notice of a usual event."""


@case(
    "days-ahead",
    "a redeploy in three days, and then a reboot in a quarter of an hour",
    why="to approve is to have it now: handlers that approve at once turn days of notice into "
    "none, and those that sleep until NotBefore miss what comes first",
)
def days_ahead(run: CaseRun) -> None:
    far = run.announce("Redeploy", notice="3d", description="Host hardware is degraded.")
    run.must_ignore(far, "it is days away, and to approve is to have it now")
    near = run.announce("Reboot")
    run.must_handle(near)


@case(
    "two-at-once",
    "two events for this VM in one document",
    why="handlers that read Events[0] only, or stop at the first match, are hit by the other one",
)
def two_at_once(run: CaseRun) -> None:
    first, second = run.announce("Freeze"), run.announce("Reboot")
    run.must_handle(first)
    run.must_handle(second)


@case(
    "overlapping",
    "two events for this VM, of which one ends while the other one is still there",
    why="handlers with one switch for all events undo everything when the first event is over",
)
def overlapping(run: CaseRun) -> None:
    first, second = run.announce("Freeze"), run.announce("Reboot", duration="30m")
    run.must_handle(first)
    run.must_handle(second)
    run.observed.wait_polls(1)
    run.finish(first)
    run.observed.wait_polls(2)
    if run.server.event(second).phase not in ("completed", "cancelled"):
        run.must_stay_drained(second, "only the other event is over")
    run.finish(second)
    run.must_undo(second, first)


@case(
    "clock-behind",
    f"the clock of the VM falls {_CLOCK_H:g} hours behind, and then there is a reboot",
    why="handlers that compare NotBefore with a wrong clock wait for an event that has begun "
    "long before; the Date of each answer has the right time",
)
def clock_behind(run: CaseRun) -> None:
    run.observed.wait_polls(1)
    # The clock of the VM cannot be set, but the one of the service can.
    run.server.advance(hours=_CLOCK_H)
    run.tell(f"the service's clock is {_CLOCK_H:g} hours ahead of the VM's from now on")
    run.observed.wait_polls(1)
    run.must_handle(run.announce("Reboot"))
    run.must_keep_polling()


@case(
    "clock-ahead",
    f"the clock of the VM is {_CLOCK_H:g} hours ahead, and there is a reboot",
    why="handlers that take a NotBefore in the past for an event that is over are hit by it",
    begins_h=-_CLOCK_H,
)
def clock_ahead(run: CaseRun) -> None:
    run.tell(f"the service's clock is {_CLOCK_H:g} hours behind the VM's")
    event = run.announce("Reboot")
    run.must_handle(event)
    run.observed.wait_polls(2)
    undone = run.observed.log.count(UNDO, event.id)
    run.must("not undo it yet", not undone, "it wrote `undo`" if undone else "it did not", event)
    run.must_keep_polling()


@case(
    "second-event",
    "a reboot, and when it is over another one",
    why="handlers that stop after their first event are blind for the rest of their lives",
)
def second_event(run: CaseRun) -> None:
    first = run.announce("Reboot")
    run.must_handle(first)
    run.finish(first)
    run.observed.wait_polls(2)
    run.must_handle(run.announce("Reboot"))


@case(
    "preempt",
    "an eviction with 30 seconds of notice",
    why="handlers that poll once a minute, or with an api-version before 2017-11-01, learn of an "
    "eviction by being gone",
)
def preempt(run: CaseRun) -> None:
    run.must_handle(run.announce("Preempt", notice="30s"), within_s=PREEMPT_S)


@case(
    "terminate",
    "this instance of a scale set is to be deleted in five minutes",
    why="handlers with an api-version before 2019-01-01 never see Terminate",
    vm=MEMBER,
    fits=is_member,
)
def terminate(run: CaseRun) -> None:
    event = run.server.delete(run.vm)
    run.tell(f"Terminate for {run.vm} (event {event.id[:8]})")
    run.must_handle(event)


@case(
    "started-first",
    "a failure: the event is Started when it is first seen, and its NotBefore is empty",
    why="handlers that read a date out of NotBefore without looking fall over the empty one",
)
def started_first(run: CaseRun) -> None:
    failure = run.announce("Reboot", already_happened=True, duration="5m")
    run.observed.wait_polls(2)
    run.must_keep_polling()
    run.finish(failure)
    run.observed.wait_polls(2)
    run.must_handle(run.announce("Reboot"))
