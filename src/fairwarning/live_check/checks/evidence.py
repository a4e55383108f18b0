"""Groups the records of a round for the checks: by event, by driver's key and by scope."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from fairwarning.live_check.records import Entry, Records, Request, Scope

T = TypeVar("T")
ENDS = ("Completed", "Cancelled", "Failed")
_STALL_S = 1.0  # A shorter stall cannot use up the spare time of a lease.


class Finding(NamedTuple):
    """A promise that was broken."""

    promise: str
    about: str
    """The id, name or label to search for in the records."""
    text: str


class Line(NamedTuple):
    """An entry of the history and its place in the history."""

    place: int
    entry: Entry


@dataclass(slots=True)
class EventHistory:
    """The lines of the history about one event."""

    id: str
    scope: str
    type: str
    operation: str | None
    is_platform: bool
    is_announced: bool
    resources: list[str]
    created_ms: int
    not_before_ms: int
    why: str
    lines: list[Line] = field(default_factory=list)

    def all(self, *kinds: str) -> list[Line]:
        return [line for line in self.lines if line.entry.kind in kinds]

    def first(self, *kinds: str) -> Line | None:
        return next(iter(self.all(*kinds)), None)


class Evidence:
    def __init__(self, records: Records) -> None:
        self.records = records
        self.scopes: dict[str, Scope] = {each.id: each for each in records.scopes}
        self.owners: dict[str, str] = {
            name: scope.id for scope in records.scopes for name in scope.instances
        }
        """The scope of each instance of the round."""
        self.deleted: set[str] = set()
        """Instances that were deleted during the round."""
        self.events: dict[str, EventHistory] = {}
        for place, entry in enumerate(records.history):
            self._read(Line(place, entry))
        calls = sorted(records.driver, key=lambda call: call.at.mono_s)
        self.calls = _grouped((call.key, call) for call in calls)
        """The driver's log by key, in order."""
        self.requests = _grouped((each.label, each) for each in records.requests)
        """Requests by label, in the order in which they were recorded."""
        self.approvals = _grouped((id, each) for each in records.approvals for id in each.events)
        """Approvals by the event that instances approved."""
        self.polls = _grouped((each.instance, each) for each in records.polls)
        """Polls by instance."""
        self.slack_ms = _clock_steps_ms(records)

    def _read(self, line: Line) -> None:
        entry = line.entry
        if entry.kind == "Scheduled" and entry.event is not None:
            event = entry.data["event"]
            self.events[entry.event] = EventHistory(
                id=entry.event,
                scope=entry.scope,
                type=event["type"],
                operation=event["operation"],
                is_platform=event["source"] == "Platform",
                is_announced=event["announced"],
                resources=event["resources"],
                created_ms=event["created_ms"],
                not_before_ms=event["not_before_ms"],
                why=entry.why,
            )
        if entry.event in self.events:
            self.events[entry.event].lines.append(line)
        for added in entry.data.get("instances", ()) if entry.kind == "InstancesAdded" else ():
            self.owners[added["name"]] = entry.scope
        if entry.kind == "InstanceDeleted":
            self.deleted.add(entry.data["name"])

    def creating_request(self, event: EventHistory) -> Request | None:
        """Returns the first try of the request that created the event, or None."""
        tries = self.requests.get(event.why, [])
        return min(tries, key=lambda each: each.sent.mono_s, default=None)

    def is_happened_already(self, event: EventHistory) -> bool:
        """Returns whether the caller said that the event is a failure that already happened."""
        request = self.creating_request(event)
        return request is not None and bool((request.body or {}).get("alreadyHappened"))

    def was_stalled(self, from_ms: float, to_ms: float) -> bool:
        """Returns whether a server was paused, or the whole machine stood still, in this time.

        A process that goes on after a pause does not know at once that its lease has ended. If it
        then sends a late order, no promise is broken: the driver must refuse the order.
        """
        paused_ms: dict[str, float] = {}
        for change in self.records.nodes:
            if change.change == "paused":
                paused_ms[change.node] = change.at.wall_ms
            elif change.change == "continued":
                began_ms = paused_ms.pop(change.node)
                if began_ms <= to_ms and change.at.wall_ms >= from_ms:
                    return True
        if any(began_ms <= to_ms for began_ms in paused_ms.values()):
            return True
        return any(
            reading.late_s >= _STALL_S
            and reading.at.wall_ms - reading.late_s * 1000 <= to_ms
            and reading.at.wall_ms >= from_ms
            for reading in self.records.clocks
        )


def approver(entry: Entry) -> str:
    """Returns who approved, such as `instance:web-0`, `operator:local` or `policy:…`."""
    by = entry.data["by"]
    return f"{by['kind']}:{by['name']}"


def _grouped(pairs: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def _clock_steps_ms(records: Records) -> float:
    """Returns by how much the wall clock of this machine or of the database was changed in the
    round, plus 1 ms for rounding.
    """
    offsets_ms = [each.at.wall_ms - each.at.mono_s * 1000 for each in records.clocks]
    database_ms = max((each.clock_step_ms for each in records.faults), default=0.0)
    return 1 + database_ms + (max(offsets_ms) - min(offsets_ms) if offsets_ms else 0.0)
