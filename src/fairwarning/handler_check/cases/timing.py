"""When is it? Days ahead, in half a minute, twice at once, or already."""

from fairwarning.handler_check.case_api import Scene
from fairwarning.handler_check.cases.registry import story
from fairwarning.handler_check.fleet import MEMBER

PREEMPT_S = 25.0
"""Of the 30 seconds, what is left when the poll that shows it was unlucky."""


@story(
    "days-ahead",
    "a redeploy in three days, and then a reboot in a quarter of an hour",
    why="to approve is to have it now: handlers that approve at once turn days of notice into "
    "none, and those that sleep until NotBefore miss what comes first",
)
def days_ahead(scene: Scene) -> None:
    far = scene.announce("Redeploy", notice="3d", description="Host hardware is degraded.")
    scene.must_ignore(far, "it is days away, and to approve is to have it now")
    near = scene.announce("Reboot")
    scene.must_handle(near)


@story(
    "two-at-once",
    "two events for this VM in one document",
    why="handlers that read Events[0] only, or stop at the first match, are hit by the other one",
)
def two_at_once(scene: Scene) -> None:
    first, second = scene.announce("Freeze"), scene.announce("Reboot")
    scene.must_handle(first)
    scene.must_handle(second)


@story(
    "second-event",
    "a reboot, and when it is over another one",
    why="handlers that stop after their first event are blind for the rest of their lives",
)
def second_event(scene: Scene) -> None:
    first = scene.announce("Reboot")
    scene.must_handle(first)
    scene.finish(first)
    scene.seen.wait_polls(2)
    scene.must_handle(scene.announce("Reboot"))


@story(
    "preempt",
    "an eviction with 30 seconds of notice",
    why="handlers that poll once a minute, or with an api-version before 2017-11-01, learn of an "
    "eviction by being gone",
)
def preempt(scene: Scene) -> None:
    scene.must_handle(scene.announce("Preempt", notice="30s"), within_s=PREEMPT_S)


@story(
    "terminate",
    "this instance of a scale set is to be deleted in five minutes",
    why="handlers with an api-version before 2019-01-01 never see Terminate",
    vm=MEMBER,
)
def terminate(scene: Scene) -> None:
    event = scene.server.delete(scene.vm)
    scene.tell(f"Terminate for {scene.vm} (event {event.id[:8]})")
    scene.must_handle(event)


@story(
    "started-first",
    "a failure: the event is Started when it is first seen, and its NotBefore is empty",
    why="handlers that read a date out of NotBefore without looking fall over the empty one",
)
def started_first(scene: Scene) -> None:
    failure = scene.announce("Reboot", already_happened=True, duration="5m")
    scene.seen.wait_polls(2)
    scene.must_live()
    scene.finish(failure)
    scene.seen.wait_polls(2)
    scene.must_handle(scene.announce("Reboot"))
