"""Encodes the core's values as JSON text, for stores that keep text.

The rule: what was written is read back equal, the order of its mappings included, and a
body written by an older version stays readable, because a missing field takes its default
and an unknown one is left out. A line of the journal that cannot be read becomes `Unknown`,
because a reader of the journal must get past it; a scope that cannot be read is an outage,
because nothing can be decided without it.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, TypeVar, get_args

import msgspec

from fairwarning.core.model import Event, EventId, Roster
from fairwarning.core.transitions import KnownTransition, Transition, Unknown
from fairwarning.engine.protocols import StoreDown

ROSTERS_CACHED_MAX = 256

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
# A roster of a hundred instances takes longer to decode than all else in a transaction, and
# seldom changes. The key is the text itself, so there is nothing that could be out of date.
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
    """The two places where a line names its event; `Scheduled` has the event itself."""

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
