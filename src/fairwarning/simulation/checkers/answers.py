"""Checks that the answers to callers are true: promises 5 and 7."""

from fairwarning.core.commands import Approve, Cancel, Operate, OperateAll, Postpone, Schedule
from fairwarning.core.model import InstanceName
from fairwarning.core.refusals import Code
from fairwarning.core.transitions import HOUSEKEEPING
from fairwarning.simulation.observed_state import ObservedWorld
from fairwarning.simulation.records import CallerAnswer, demand
from fairwarning.simulation.world import World

_LOST = "5 nothing acknowledged is lost"


class AnswerChecker:
    def __init__(self, world: World) -> None:
        self._world = world

    def check(self, seen: ObservedWorld) -> None:
        for answer in self._world.answers:
            self._check_answer(seen, answer)
        self._world.answers.clear()

    def _check_answer(self, seen: ObservedWorld, answer: CallerAnswer) -> None:
        """Checks that the journal has what the caller was told, and that a refusal was right."""
        command = answer.request.command
        if answer.refused is not None:
            if isinstance(command, Approve):
                fair = self._is_fair_refusal(seen, answer, command)
                demand("7 approving is idempotent", fair, lambda: f"{answer}")
            return
        assert answer.receipt is not None
        demand(_LOST, self._is_done(seen, answer), lambda: str(answer.request))
        history = [t for t in answer.receipt.transitions if not isinstance(t, HOUSEKEEPING)]
        if not history:
            return
        key = (answer.receipt.scope.id, answer.receipt.scope.revision)
        written = seen.lines.get(key, [])
        is_same = written == [repr(each) for each in history]
        demand(_LOST, is_same, lambda: f"told {history}, written {written}")

    def _is_done(self, seen: ObservedWorld, answer: CallerAnswer) -> bool:
        events = seen.scopes[answer.request.scope_id].events
        match answer.request.command:
            case Schedule(event_id=event_id) | Operate(event_id=event_id):
                return event_id in events
            case OperateAll(targets=targets):
                return all(event_id in events for event_id, _ in targets)
            case Postpone(new_event_id=event_id):
                return event_id in events
            case Approve(event_id=event_id):
                return bool(events[event_id].approvals) or not events[event_id].is_waiting
            case Cancel(event_id=event_id):
                return events[event_id].ended_ms is not None
            case _:
                return True

    def _is_fair_refusal(self, seen: ObservedWorld, answer: CallerAnswer, command: Approve) -> bool:
        """Returns whether the refusal was right: the event was over or the instance foreign."""
        assert answer.refused is not None
        scope = seen.scopes[answer.request.scope_id]
        name = InstanceName(command.by.name)
        match answer.refused.code:
            case Code.NOT_IN_SCOPE:
                return name not in scope.instances or name in scope.was_deleted
            case Code.EVENT_FINISHED | Code.UNKNOWN_EVENT:
                event = scope.events.get(command.event_id)
                return event is None or event.ended_ms is not None
            case _:
                return False
