"""Says in words why an event is not approved. `why_not_approved` is pure."""

from collections.abc import Callable, Iterable, Mapping

from fairwarning.agent import logs
from fairwarning.agent.approval import is_ready
from fairwarning.agent.model import OnFailure, Phase, Shared, When
from fairwarning.agent.records import Approval, Memory, Progress, Record
from fairwarning.agent.steps import Step, Wait

_ENDED_BADLY = (Progress.FAILED, Progress.SKIPPED)


def why_not_approved(record: Record, me: str, step: Step | None) -> str | None:
    """Return why the event is not approved now. It is None if it is approved, has started, or the
    drain still goes on. `step` is what the plan decided for the event.
    """
    if record.is_local or record.phase is not Phase.SCHEDULED:
        return None
    if record.approval is not Approval.NONE:
        return None
    if record.rule is None:
        return "no rule fits it"
    if not record.is_mine:
        return f"it does not concern {me}"
    policy = record.rule.approve
    if policy.when is When.NEVER:
        return f"rule {record.rule.name!r} never approves"
    if failed := _failed(record):
        return failed
    if isinstance(step, Wait) and not record.action_states and not is_ready(record):
        return step.why  # The event is far away, so the drain has not begun.
    if not is_ready(record):
        return None
    resources = record.event.resources
    if len(resources) > 1 and policy.shared is Shared.LEADER and resources[0] != me:
        return f"{resources[0]}, the first VM of the event, approves it"
    return step.why if isinstance(step, Wait) else None


def _failed(record: Record) -> str | None:
    """Return the first action whose failure forbids the approval, in words."""
    if is_ready(record):
        return None
    for place, action in record.actions(Phase.SCHEDULED):
        state = record.action_state(place)
        is_bad = state is not None and state.progress in _ENDED_BADLY
        if state is not None and is_bad and action.on_failure is OnFailure.STOP:
            return f"{action.title} did not work" + (f": {state.why}" if state.why else "")
    return None


class ApprovalReasons:
    """Keeps why each event is not approved, and logs each reason once for an event."""

    def __init__(self) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self.now: Mapping[str, str] = {}
        """The present reasons, by the event's id."""
        self._said: set[tuple[str, str]] = set()

    def update(self, memory: Memory, steps: Iterable[Step], me: str) -> None:
        waits = {step.event_id: step for step in steps if isinstance(step, Wait)}
        found = {
            id: why
            for id, record in memory.records.items()
            if (why := why_not_approved(record, me, waits.get(id))) is not None
        }
        # The reasons are kept before they are logged, so that who reads the log finds them.
        is_new = found != self.now
        self.now = found
        if is_new:
            self.on_change()
        for pair in found.items():
            if pair not in self._said:
                id, why = pair
                logs.say(f"not approved, because {why}", event=id, why=why)
        # An event that is over is forgotten, so that this set does not grow.
        known = {each for each in self._said if each[0] in memory.records}
        self._said = known | {*found.items()}
