"""The state of a watch, which says what was reported. A caller may save it for after a restart."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any, Self

from fairwarning.client.model import Document, Event, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Everything that a watch must remember from one document to the next."""

    incarnation: int = 0
    events: Mapping[str, Event] = field(default_factory=dict)
    """The events that are not over, by id, as they were last seen."""
    approved: frozenset[str] = frozenset()
    """The ids of events that we approved, without those that the service refused."""
    over: tuple[str, ...] = ()
    """The ids of events that have certainly ended. The last id is the newest."""
    presumed: Mapping[str, int] = field(default_factory=dict)
    """The ids of events that only doubtful documents ended, with the incarnation of the newest
    document that showed the event. If a document of at least this incarnation shows the event
    again, it had not ended.
    """
    shown: Mapping[str, int] = field(default_factory=dict)
    """The incarnation of the newest document that showed an event, by id. If an id is not here, it
    is `incarnation`.
    """
    missed: Mapping[str, int] = field(default_factory=dict)
    """How many responses in a row did not show an event that still counts as present, by id."""
    longest_gap: int = 0
    """The highest number of responses in a row that did not show an event that was not over."""
    doubts: int = 0
    """How many documents in a row contradicted what was seen before."""
    doubted: Document | None = None
    """The last document that contradicted what was seen before."""

    @property
    def is_in_doubt(self) -> bool:
        """Whether the last document contradicted what was seen, so that the next must come soon."""
        return self.doubts > 0

    def shown_in(self, id: str) -> int:
        """Return the incarnation of the newest document that showed the event."""
        return self.shown.get(id, self.incarnation)

    def to_json(self) -> str:
        """Return a text that `from_json` reads."""
        return json.dumps(asdict(self), default=_plain, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the state that `to_json` wrote, even in another version of this library.

        Raises ValueError if the text is something else.
        """
        try:
            raw = json.loads(text)
            known = {each.name for each in fields(cls)} & raw.keys()
            values = {name: raw[name] for name in known}
            read = {name: _READERS[name](raw[name]) for name in known & _READERS.keys()}
            return cls(**values | read)
        except (ValueError, TypeError, KeyError, AttributeError) as problem:
            raise ValueError(
                f"this is not what Seen.to_json wrote ({problem!r}); begin with Seen(), and events "
                "that are there are told of again"
            ) from None


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(f"{value!r} cannot be written as JSON")


def _event(raw: Mapping[str, Any]) -> Event:
    known = {each.name: raw[each.name] for each in fields(Event) if each.name in raw}
    not_before = raw.get("not_before")
    return Event(**{
        **known,
        "status": Status(raw["status"]),
        "resources": tuple(raw["resources"]),
        "not_before": not_before and datetime.fromisoformat(not_before),
    })  # fmt: skip


def _document(raw: Mapping[str, Any] | None) -> Document | None:
    if raw is None:
        return None
    return Document(
        incarnation=raw["incarnation"], events=tuple(_event(each) for each in raw["events"])
    )


_READERS: dict[str, Callable[[Any], Any]] = {
    "events": lambda raw: {id: _event(each) for id, each in raw.items()},
    "approved": frozenset,
    "over": tuple,
    "doubted": _document,
}
