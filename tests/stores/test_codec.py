"""What is written is read back equal, today's form and yesterday's."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import NODEFAULT
from msgspec.structs import FieldInfo, fields, replace

from fairwarning.core.model import Event, EventId, EventType, Policy, Roster
from fairwarning.core.transitions import KnownTransition, Unknown
from fairwarning.engine.protocols import StoreDown
from fairwarning.stores.codec import (
    decode_event,
    decode_events,
    decode_roster,
    decode_transition,
    encode,
)
from tests.stores.fleet import web
from tests.stores.values import values_of

KINDS = get_args(KnownTransition)


def order_of(value: object) -> str:
    """Equal mappings may differ in the order of their keys; their texts then differ too."""
    return repr(value)


@given(values_of(Roster))
def test_rosters_come_back(roster: Roster) -> None:
    decoded = decode_roster(encode(roster))
    assert decoded == roster
    assert order_of(decoded) == order_of(roster)


@given(values_of(dict[EventId, Event]))
def test_events_come_back(events: dict[EventId, Event]) -> None:
    decoded = decode_events(encode(events))
    assert decoded == events
    assert order_of(decoded) == order_of(events)
    for event in events.values():
        assert decode_event(encode(event)) == event


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=10)
@given(data=st.data())
def test_transitions_come_back_by_the_name_of_their_class(kind: type, data: st.DataObject) -> None:
    transition = data.draw(values_of(kind))
    decoded = decode_transition(kind.__name__, encode(transition))
    assert decoded == transition
    assert order_of(decoded) == order_of(transition)


def test_enums_are_keys_and_come_back_as_enums() -> None:
    policy = Policy(notice_ms={EventType.REBOOT: 1, EventType.FREEZE: 2})
    roster = replace(web().roster, policy=policy)
    (first, _) = decode_roster(encode(roster)).policy.notice_ms
    assert first is EventType.REBOOT


def _default_of(field: FieldInfo) -> Any:
    if field.default is not NODEFAULT:
        return field.default
    return field.default_factory() if field.default_factory is not NODEFAULT else NODEFAULT


@given(values_of(Event), st.data())
def test_a_field_that_an_older_version_did_not_write_takes_its_default(
    event: Event, data: st.DataObject
) -> None:
    defaults = {each.name: _default_of(each) for each in fields(Event)}
    optional = sorted(name for name, default in defaults.items() if default is not NODEFAULT)
    missing = data.draw(st.sets(st.sampled_from(optional)))
    body = json.loads(encode(event))
    older = {name: value for name, value in body.items() if name not in missing}
    decoded = decode_event(json.dumps({**older, "from_a_newer_version": 1}))
    for name, default in defaults.items():
        assert getattr(decoded, name) == (default if name in missing else getattr(event, name))


@pytest.mark.parametrize("body", ["", "{", "[]", "{}", '{"kind": 7}', "\ud800"])
def test_a_damaged_body_is_an_outage_that_says_so(body: str) -> None:
    for decode in (decode_roster, decode_event):
        with pytest.raises(StoreDown, match="restore a backup"):
            decode(body)


@pytest.mark.parametrize(
    ("kind", "body", "event"),
    [
        ("Exploded", "{}", None),
        ("Exploded", '{"event_id": "E", "blast": [1]}', "E"),
        ("Exploded", '{"event": {"id": "E"}}', "E"),
        ("Started", '{"event_id": "E", "cause": "whim", "at_ms": 1}', "E"),
        ("Started", "{", None),
        ("Started", "[]", None),
        ("Started", '{"event_id": 7}', None),
        ("Unknown", '{"kind": "k", "body": "b"}', None),
    ],
)
def test_a_line_that_cannot_be_read_is_handed_on_as_it_is(
    kind: str, body: str, event: str | None
) -> None:
    found = decode_transition(kind, body)
    assert isinstance(found, Unknown)
    assert (found.kind, found.body, found.event_id) == (kind, body, event)
