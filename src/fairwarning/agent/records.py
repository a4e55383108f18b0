"""What the agent remembers of each event: what it is, what was done for it, what is still owed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from fairwarning.agent.model import Action, Phase, Rule
from fairwarning.client.changes import Seen
from fairwarning.client.model import Event


class Mark(StrEnum):
    """How far a deed is. Each is on disk before what it says happens."""

    BEGUN = "begun"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    """Never begun."""
    UNDOING = "undoing"
    UNDONE = "undone"


HOLDS = frozenset((Mark.BEGUN, Mark.DONE, Mark.FAILED, Mark.UNDOING))
"""Something may have been done that must be undone. Also what failed may be half done."""


class Approval(StrEnum):
    NONE = "none"
    BEGUN = "begun"
    """The service may or may not have heard it."""
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """One action of the rule, for one event."""

    mark: Mark
    why: str = ""
    """What went wrong, or why it was left out."""
    undo_failures: int = 0
    retry_at: datetime | None = None
    """When its undo is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which action of which event."""

    event_id: str
    phase: Phase
    index: int

    @property
    def slot(self) -> str:
        return f"{self.phase}/{self.index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    event: Event
    """As last seen."""
    rule: Rule | None
    """As it was when the event was first seen: a new config changes nothing for it."""
    phase: Phase
    is_mine: bool
    not_before: datetime | None = None
    """Kept, because the event itself forgets it when it starts."""
    margin_s: float = 0.0
    ahead_s: float | None = None
    """How long before NotBefore work begins; None: at once."""
    deeds: Mapping[str, Deed] = field(default_factory=dict)
    """By slot."""
    approval: Approval = Approval.NONE
    is_reported: bool = False
    """The other VMs of the event can know that we are ready."""

    @property
    def is_over(self) -> bool:
        return self.phase in (Phase.FINISHED, Phase.CANCELLED)

    def deed(self, place: Place) -> Deed | None:
        return self.deeds.get(place.slot)

    def actions(self, phase: Phase) -> Iterator[tuple[Place, Action]]:
        for index, action in enumerate(() if self.rule is None else self.rule.actions(phase)):
            yield Place(event_id=self.event.id, phase=phase, index=index), action


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    seen: Seen = field(default_factory=Seen)
    """The client's, written together with what follows from it."""
    records: Mapping[str, Record] = field(default_factory=dict)
    kept: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What actions want to know when they are undone, by the action's key."""

    def with_record(self, record: Record) -> "Memory":
        return replace(self, records={**self.records, record.event.id: record})

    def with_deed(self, place: Place, deed: Deed) -> "Memory":
        record = self.records[place.event_id]
        return self.with_record(replace(record, deeds={**record.deeds, place.slot: deed}))

    def action(self, place: Place) -> Action:
        rule = self.records[place.event_id].rule
        assert rule is not None, "only a rule has actions"
        return rule.actions(place.phase)[place.index]

    def key(self, place: Place) -> str:
        return self.action(place).key(place.event_id)

    def holders(self, key: str, *, besides: Place) -> Iterator[Deed]:
        """What else was done by an action of this key, for any event, and not undone."""
        for record in self.records.values():
            for phase in (Phase.SCHEDULED, Phase.STARTED):
                for place, action in record.actions(phase):
                    deed = record.deed(place)
                    if deed is None or place == besides or deed.mark not in HOLDS:
                        continue
                    if action.is_undoable and action.key(record.event.id) == key:
                        yield deed
