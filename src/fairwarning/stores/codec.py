"""Encodes the core's values as JSON text, for stores that keep text.

A value that is written and read again is equal, and its mappings keep their order. A body that
an older version wrote can still be read: a missing field gets its default, and an unknown field is
ignored. A journal line that cannot be read becomes `Unknown`, because the reader of the journal
must be able to go on. A scope that cannot be read raises StoreDown, because nothing can be decided
without it.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, TypeVar, get_args

import msgspec

from fairwarning.core.model import Event, EventId, Roster
from fairwarning.core.transitions import KnownTransition, Transition, Unknown
from fairwarning.engine.protocols import StoreDown

ROSTERS_CACHED_MAX = 256  # Enough for the scopes that change often.

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_transitions: Mapping[str, msgspec.json.Decoder[Any]] = {
    each.__name__: msgspec.json.Decoder(each) for each in get_args(KnownTransition)
}


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
