"""Encodes the core's values as JSON text, and decodes them from the rows of the SQL stores.

A value that is written and read again is equal, and its mappings keep their order. A body that
an older version wrote can still be read: a missing field gets its default, and an unknown field is
ignored. A journal line that cannot be read becomes `Unknown`, because the reader of the journal
must be able to go on. A scope that cannot be read raises StoreDown, because nothing can be decided
without it.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeVar, get_args

import msgspec

from fairwarning.core.instants import Instant
from fairwarning.core.model import Actor, Event, EventId, Roster, Scope, ScopeId
from fairwarning.core.transitions import KnownTransition, Transition, Unknown
from fairwarning.engine.protocols import Entry, Record, StoreDown

ROSTERS_CACHED_MAX = 256  # Enough for the scopes that change often.

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_transitions: Mapping[str, msgspec.json.Decoder[Any]] = {
    each.__name__: msgspec.json.Decoder(each) for each in get_args(KnownTransition)
}

Row = Sequence[Any]
"""A row of a result. Its columns are in the order of the query."""


def encode(value: object) -> str:
    return _encoder.encode(value).decode()


def _decode(decoder: msgspec.json.Decoder[T], what: str, body: str) -> T:
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise _damaged(what) from error


decode_event = partial(_decode, msgspec.json.Decoder(Event), "event")
decode_events = partial(_decode, msgspec.json.Decoder(dict[EventId, Event]), "list of events")
# To decode a roster of a hundred instances takes longer than the rest of a transaction, and a
# roster seldom changes. The key of the cache is the text itself, so no entry is ever out of date.
decode_roster = lru_cache(ROSTERS_CACHED_MAX)(
    partial(_decode, msgspec.json.Decoder(Roster), "roster")
)


def decode_transition(kind: str, body: str) -> Transition:
    decoder = _transitions.get(kind)
    if decoder is not None:
        with suppress(msgspec.DecodeError, UnicodeError):
            transition: KnownTransition = decoder.decode(body)
            return transition
    return Unknown(kind=kind, body=body, event_id=_event_id_in(body))


class _AboutEvent(msgspec.Struct):
    """The two places where a line has the id of its event; `Scheduled` has the whole event."""

    event_id: EventId | None = None
    event: "_Identified | None" = None


class _Identified(msgspec.Struct):
    id: EventId | None = None


_about_event = msgspec.json.Decoder(_AboutEvent)


def _event_id_in(body: str) -> EventId | None:
    try:
        found = _about_event.decode(body)
    except (msgspec.DecodeError, UnicodeError):
        return None
    return found.event_id or (found.event.id if found.event else None)


def _damaged(what: str) -> StoreDown:
    return StoreDown(
        f"a stored {what} cannot be read: it is damaged, or a newer version wrote it; restore a "
        "backup, or upgrade"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A scope as it is stored, with its deadline, which is not part of `Scope`."""

    scope: Scope
    next_deadline_ms: Instant | None


def stored_of(row: Row, roster: str) -> Stored:
    """Returns the scope of a row. Raises StoreDown if the row is damaged. `roster` is not in the
    row, because PostgreSQL must read it after it has locked the scope.
    """
    id, revision, incarnation, activated_ms, last_seen_ms, next_deadline_ms, events = row
    scope = Scope(
        id=id,
        roster=decode_roster(roster),
        revision=revision,
        incarnation=incarnation,
        activated_ms=activated_ms,
        last_seen_ms=last_seen_ms,
        # Most scopes have no events, and a start reads them all.
        events={} if events == "{}" else decode_events(events),
    )
    return Stored(scope=scope, next_deadline_ms=next_deadline_ms)


def scope_of(row: Row) -> Scope:
    """Returns the scope of a row with the columns of `stored_of` and then the roster."""
    return stored_of(row[:-1], row[-1]).scope


def entry_of(row: Row) -> Entry:
    position, scope_id, revision, at_ms, actor_kind, actor_name, why, kind, body = row
    return Entry(
        position=position,
        scope_id=scope_id,
        revision=revision,
        at_ms=at_ms,
        by=Actor(kind=actor_kind, name=actor_name),
        why=why,
        transition=decode_transition(kind, body),
    )


def event_of(row: Row) -> tuple[ScopeId, Event]:
    scope_id, body = row
    return scope_id, decode_event(body)


def record_of(row: Row) -> Record:
    kind, key, revision, body = row
    return Record(kind=kind, key=key, revision=revision, body=body)
