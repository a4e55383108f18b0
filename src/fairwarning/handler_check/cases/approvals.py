"""Approving: once is enough, more does no harm, and somebody else may be first."""

from fairwarning.handler_check.case_api import Scene
from fairwarning.handler_check.cases.registry import story
from fairwarning.handler_check.fleet import MEMBER, NEIGHBOUR
from fairwarning.handler_check.observations import DRAIN

OLD_VERSION = "2017-03-01"
_WATCHED_POLLS = 4


@story(
    "re-approval",
    "an approved event stays Scheduled, because another VM's deletion is not approved yet",
    why="handlers that approve or drain again in a loop load the service and do their work twice; "
    "once for each poll is allowed",
    vm=MEMBER,
)
def re_approval(scene: Scene) -> None:
    scene.server.delete("workers_2")
    event = scene.server.delete(scene.vm)
    scene.tell(f"Terminate for {scene.vm} and for workers_2, which nobody approves")
    scene.must_handle(event)
    approvals, polls = scene.seen.approvals(event.id), scene.seen.polls()
    scene.seen.wait_polls(_WATCHED_POLLS)
    more = scene.seen.approvals(event.id) - approvals
    asked = scene.seen.polls() - polls
    scene.must(
        "approve at most once for each poll",
        more <= asked + 1,
        f"it approved {more} times more in {asked} polls",
    )
    drains = scene.seen.diary.count(DRAIN, event.id)
    scene.must("prepare once", drains <= 1, f"it drained {drains} times" if drains else "it did")
    scene.must_live()


@story(
    "approval-refused",
    "the first two approvals are answered with 503",
    why="handlers that do not look at the answer believe they have approved, and wait in vain",
)
def approval_refused(scene: Scene) -> None:
    scene.server.fault("status", scene.vm, on="approve", status=503, count=2)
    scene.tell("the next two approvals are answered with 503")
    event = scene.announce("Reboot")
    scene.must_handle(event)
    if scene.seen.approvals(event.id):
        is_retried = scene.seen.wait(lambda: scene.server.event(event).phase != "scheduled")
        did = f"it approved {scene.seen.approvals(event.id)} times"
        scene.must("approve again until it is taken", is_retried, did)


@story(
    "mixed-versions",
    f"a neighbour polls with {OLD_VERSION} and approves this VM's event before its handler can",
    why="events start without one's own approval, and neighbours may use any api-version",
)
def mixed_versions(scene: Scene) -> None:
    other = scene.neighbour(NEIGHBOUR)
    other.document(OLD_VERSION)
    event = scene.announce("Reboot", duration="5m")
    other.approve(event.id, version=OLD_VERSION)
    scene.tell(f"{NEIGHBOUR} approves it with {OLD_VERSION}; it is Started")
    scene.seen.wait_polls(2)
    scene.must_live()
    scene.finish(event)
    scene.seen.wait_polls(2)
    scene.must_handle(scene.announce("Reboot"))
    scene.tell(f"the handler itself uses {scene.seen.versions()}")
