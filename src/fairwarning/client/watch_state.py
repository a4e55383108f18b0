"""What a watch has told of so far: the memory that a caller keeps over a restart."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any, Self

from fairwarning.client.model import Document, Event, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Everything that must be remembered between two documents, also over a restart."""

    incarnation: int = 0
    events: Mapping[str, Event] = field(default_factory=dict)
    """Those that are not over, as they were last seen."""
    approved: frozenset[str] = frozenset()
    """By us, as far as the service did not refuse it; also while it is being asked."""
    over: tuple[str, ...] = ()
    """Ids that will not come again; the newest at the end."""
    presumed: Mapping[str, int] = field(default_factory=dict)
    """Ids that are over on the word of doubtful documents, with the incarnation of the newest
    document that showed them; shown by one that is as new as that, they were not over."""
    shown: Mapping[str, int] = field(default_factory=dict)
    """By id, the incarnation of the newest document that showed the event, if it is not the one
    above."""
    missed: Mapping[str, int] = field(default_factory=dict)
    """By id, how many answers in a row did not show an event that is not taken to be over."""
    longest_lie: int = 0
    """So many answers in a row once did not show an event that was not over."""
    doubts: int = 0
    doubted: Document | None = None

    @property
    def is_in_doubt(self) -> bool:
        """The last document was not believed in full, so ask again soon."""
        return self.doubts > 0

    def shown_in(self, id: str) -> int:
        return self.shown.get(id, self.incarnation)

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=_plain, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Also of an older or newer version of this library. Raises ValueError."""
        try:
            raw = json.loads(text)
            known = {each.name for each in fields(cls)} & raw.keys()
            return cls(**{name: _READERS.get(name, _as_it_is)(raw[name]) for name in known})
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


def _as_it_is(raw: Any) -> Any:
    return raw


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
