"""How does it end? The document does not say it: the event is only gone."""

from fairwarning.handler_check.case_api import Scene
from fairwarning.handler_check.cases.registry import story
from fairwarning.handler_check.fleet import NEIGHBOUR

_STOPPED_POLLS = 2
_SILENCE_H = 30.0
_FAILURES = 3


@story(
    "completed",
    "a reboot that is approved, happens and is over",
    why="handlers that never undo leave nodes cordoned (aks-node-termination-handler#43)",
)
def completed(scene: Scene) -> None:
    event = scene.announce("Reboot")
    scene.must_handle(event)
    scene.finish(event)
    scene.must_undo(event)
    scene.must_live()


@story(
    "cancelled",
    "a reboot that is cancelled, after the handler has prepared for it",
    why="handlers that wait for Started only never undo what a cancelled event made them do",
)
def cancelled(scene: Scene) -> None:
    # So that it is still to come when it is cancelled, however fast the handler is.
    with scene.server.fault("status", scene.vm, on="approve", status=503):
        event = scene.announce("Reboot")
        scene.tell("approvals are answered with 503")
        scene.seen.wait(lambda: scene.seen.has_touched(event.id))
        scene.server.cancel(event)
    scene.tell("the event is cancelled and gone from the document")
    scene.seen.wait_polls(_STOPPED_POLLS)
    before = scene.seen.approvals(event.id)
    scene.must_live()
    after = scene.seen.approvals(event.id)
    scene.must(
        "stop approving an event that is gone",
        after == before,
        "it did" if after == before else f"it approved {after - before} times more",
    )
    scene.must_undo(event)


@story(
    "own-reboot",
    "the handler dies in the reboot that it prepared for, and comes back when it is over",
    why="handlers that keep what they did in memory forget to undo it after their own reboot",
)
def own_reboot(scene: Scene) -> None:
    event = scene.announce("Reboot")
    scene.must_handle(event)
    scene.seen.wait_polls(1)
    scene.finish(event)
    scene.restart_handler()
    scene.must_undo(event)
    scene.must_live()


@story(
    "incarnation-reset",
    "a day without a poll: the service forgets the scope and counts its documents from 1 again",
    why="handlers that take a lower DocumentIncarnation for old news ignore all that follows",
    begins_h=-_SILENCE_H,
)
def incarnation_reset(scene: Scene) -> None:
    for _ in range(_FAILURES):
        # Started already, so that a handler that approves for others cannot get in the way.
        scene.finish(scene.announce("Reboot", NEIGHBOUR, already_happened=True))
    scene.seen.wait_polls(2)
    scene.server.advance(hours=_SILENCE_H)
    scene.tell("more than a day passes; DocumentIncarnation begins at 1 again")
    scene.seen.wait_polls(2)
    scene.must_handle(scene.announce("Reboot"))
