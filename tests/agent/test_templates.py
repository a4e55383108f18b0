"""Texts that stand for something, and texts that must stay as they are."""

import json

from hypothesis import given
from hypothesis import strategies as st

from fairwarning.agent.config.model import Phase
from fairwarning.agent.templates import (
    NAMES,
    environment_of,
    fill,
    fill_json,
    unknown_names,
    values_of,
)
from tests.agent.values import ME, event

VALUES = values_of(event(), ME, Phase.SCHEDULED, 12.7)


def test_every_name_is_filled_in() -> None:
    assert set(VALUES) == set(NAMES)
    assert fill("{event.id} of {me}: {time_left}", VALUES) == "E1 of web-0: 12"
    assert fill("{event.not_before}", VALUES) == "2026-01-01T00:15:00Z"


def test_other_braces_mean_themselves() -> None:
    text = '{"a": {"b": {}}} ${me} {ME} { me }'
    assert fill(text, VALUES) == text
    assert unknown_names(text) == []
    assert unknown_names("{event.ids} {x}") == ["event.ids", "x"]


@given(description=st.text())
def test_what_an_event_says_cannot_leave_its_json_string(description: str) -> None:
    values = values_of(event(description=description), ME, Phase.STARTED, 0)
    body = fill_json('{"text": "{event.description}", "event": {event.json}}', values)
    read = json.loads(body)
    assert read["text"] == description
    assert read["event"]["Description"] == description


def test_commands_have_it_all_in_their_environment() -> None:
    environment = environment_of(VALUES)
    assert environment["FAIRWARNING_EVENT_TYPE"] == "Reboot"
    assert environment["FAIRWARNING_ME"] == "web-0"
    assert environment["FAIRWARNING_TIME_LEFT"] == "12"


def test_a_value_that_no_environment_can_hold_is_left_out_and_stops_no_command() -> None:
    environment = environment_of(values_of(event(description="a\0b"), ME, Phase.SCHEDULED, 12))
    assert "FAIRWARNING_EVENT_DESCRIPTION" not in environment
    assert environment["FAIRWARNING_EVENT_ID"] == "E1"
