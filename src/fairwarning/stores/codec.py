"""The core's values as JSON text, for stores that keep text.

The rule: what was written is read back equal, the order of its mappings included, and a
body written by an older version stays readable, because a missing field takes its default
and an unknown one is left out.
"""

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, TypeVar, get_args

import msgspec

from fairwarning.core.model import Event, EventId, Roster
from fairwarning.core.transitions import Transition
from fairwarning.engine.ports import StoreDown

ROSTERS_CACHED_MAX = 256

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_transitions: Mapping[str, msgspec.json.Decoder[Any]] = {
    each.__name__: msgspec.json.Decoder(each) for each in get_args(Transition)
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
    what = f"journal entry of kind {kind!r}"
    decoder = _transitions.get(kind)
    if decoder is None:
        raise _damaged(what)
    transition: Transition = _decode(decoder, what, body)
    return transition


def _damaged(what: str) -> StoreDown:
    return StoreDown(
        f"a stored {what} cannot be read: it is damaged, or a newer version wrote it; restore a "
        "backup, or upgrade"
    )
