"""What the agent remembers about each event: the rule, the progress of actions, the approval."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from fairwarning.agent.config.model import Action, Phase, Rule
from fairwarning.client.changes import Seen
from fairwarning.client.model import Event


class Progress(StrEnum):
    """How far the agent has come with one action of an event.

    BEGUN and UNDOING are stored before the action or its undo starts. So a restarted agent knows
    what may be half done.
    """

    BEGUN = "begun"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    """The action was never begun."""
    UNDOING = "undoing"
    UNDONE = "undone"


HOLDS = frozenset((Progress.BEGUN, Progress.DONE, Progress.FAILED, Progress.UNDOING))
"""An action with one of these values must still be undone. FAILED is one of them, because a failed
action may be half done.
"""


class Approval(StrEnum):
    NONE = "none"
    BEGUN = "begun"
    """The service may or may not have received the approval."""
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionState:
    """The progress of one action for one event."""

    progress: Progress
    why: str = ""
    """What went wrong, or why the action was skipped."""
    undo_failures: int = 0
    retry_at: datetime | None = None
    """When a failed undo is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Identifies one action of one event, by its list (`phase`) and its index there."""

    event_id: str
    phase: Phase
    index: int

    @property
    def slot(self) -> str:
        return f"{self.phase}/{self.index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    event: Event
    """The event as it was last seen."""
    rule: Rule | None
    """The rule that was chosen when the event was first seen. A new config does not change it."""
    phase: Phase
    is_mine: bool
    is_local: bool = False
    """Whether the event is a shutdown of the host itself. The service does not know it."""
    not_before: datetime | None = None
    """The last known NotBefore. The event itself has none once it has started."""
    margin_s: float = 0.0
    ahead_s: float | None = None
    """How long before NotBefore work begins. None means at once."""
    action_states: Mapping[str, ActionState] = field(default_factory=dict)
    """The state of each action that was begun or skipped, by `Place.slot`."""
    approval: Approval = Approval.NONE
    is_reported: bool = False
    """Whether this VM has reported that it is ready."""

    @property
    def is_over(self) -> bool:
        return self.phase in (Phase.FINISHED, Phase.CANCELLED)

    def action_state(self, place: Place) -> ActionState | None:
        return self.action_states.get(place.slot)

    def progress(self, place: Place) -> Progress | None:
        """Return how far the action has come. It is None if it was neither begun nor skipped."""
        state = self.action_states.get(place.slot)
        return None if state is None else state.progress

    def actions(self, phase: Phase) -> Iterator[tuple[Place, Action]]:
        for index, action in enumerate(() if self.rule is None else self.rule.actions(phase)):
            yield Place(event_id=self.event.id, phase=phase, index=index), action


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    seen: Seen = field(default_factory=Seen)
    """The client's state. It is stored together with the records that were made from it."""
    records: Mapping[str, Record] = field(default_factory=dict)
    kept: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The values that actions need for their undo, by the action's key."""

    def with_record(self, record: Record) -> "Memory":
        return replace(self, records={**self.records, record.event.id: record})

    def with_action_state(self, place: Place, state: ActionState) -> "Memory":
        record = self.records[place.event_id]
        return self.with_record(
            replace(record, action_states={**record.action_states, place.slot: state})
        )

    @property
    def unfinished_local(self) -> Mapping[str, Record]:
        """The records of shutdowns of the host that are not over, by the event's id."""
        return {id: each for id, each in self.records.items() if each.is_local and not each.is_over}

    def action(self, place: Place) -> Action:
        rule = self.records[place.event_id].rule
        assert rule is not None, "only a rule has actions"
        return rule.actions(place.phase)[place.index]

    def key(self, place: Place) -> str:
        return self.action(place).key(place.event_id)

    def holders(self, key: str, *, besides: Place) -> Iterator[ActionState]:
        """Yield the states of other actions of any event that have this key and are not undone."""
        for record in self.records.values():
            for phase in (Phase.SCHEDULED, Phase.STARTED):
                for place, action in record.actions(phase):
                    state = record.action_state(place)
                    if state is None or place == besides or state.progress not in HOLDS:
                        continue
                    if action.is_undoable and action.key(record.event.id) == key:
                        yield state
