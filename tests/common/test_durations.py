"""Durations are written in the same way in every file, flag and API."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.agent.config.reader import read_config
from fairwarning.cli.click_types import duration
from fairwarning.cli.times import parse_duration_ms as parse_option_ms
from fairwarning.common.durations import (
    DURATION_PATTERN,
    format_iso_duration,
    human_ms,
    human_s,
    parse_duration_ms,
    parse_duration_s,
    parse_iso_duration_ms,
)
from fairwarning.core.model import EventType
from fairwarning.core.notice import parse_terminate_notice_ms
from fairwarning.operator_api.parse_request import read_body, read_duration_ms
from fairwarning.operator_api.schemas import TokenBody
from fairwarning.scenarios.model import Schedule
from fairwarning.scenarios.parse import read_scenario
from fairwarning.testing.arguments import span_ms
from tests.support.fleet_files import read_toml

MINUTE_MS = 60_000
LONG = "1h30m"
LONG_MS = 90 * MINUTE_MS


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0s", 0),
        ("30s", 30),
        ("15m", 900),
        ("2h", 7_200),
        ("1d", 86_400),
        ("1h30m", 5_400),
        ("1d2h3m4s", 93_784),
        ("1d4s", 86_404),
        ("PT15M", 900),
        ("P1D", 86_400),
        ("P1DT1H30M", 91_800),
        ("PT1H1S", 3_601),
    ],
)
def test_every_spelling_is_read(text: str, seconds: int) -> None:
    assert parse_duration_ms(text) == seconds * 1000
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "15", "m", "30m1h", "-5m", "1.5h", "1w", "P", "PT", "P1DT", "P1M", "P1W", "pt5m", "15M",
     "PT15m", "1hPT1M", "1 h", " 1h", "1h\n", "PT1H\n", "1234567s", "\u0661m"],
)  # fmt: skip
def test_everything_else_is_no_duration(text: str) -> None:
    assert parse_duration_ms(text) is None
    assert parse_duration_s(text) is None
    assert parse_iso_duration_ms(text) is None


def test_azures_interfaces_take_iso_8601_only() -> None:
    assert parse_iso_duration_ms("PT1H30M") == LONG_MS
    assert parse_iso_duration_ms(LONG) is None


@given(st.text("0123456789dhmsPTDHMS\n", max_size=12))
def test_the_published_pattern_fits_what_is_read_and_nothing_else(text: str) -> None:
    assert (re.search(DURATION_PATTERN, text) is not None) == (parse_duration_ms(text) is not None)


@given(st.integers(0, 999_999 * 3_600))
def test_what_is_written_is_read_again(seconds: int) -> None:
    assert parse_duration_ms(format_iso_duration(seconds * 1000)) == seconds * 1000


def test_a_fleet_file_takes_hours_and_minutes_together() -> None:
    fleet = read_toml(f'[[vm]]\nname = "a"\nnotice.Reboot = "{LONG}"\n')
    assert fleet.resources[0].policy.notice_ms == {EventType.REBOOT: LONG_MS}


def test_a_terminate_notice_takes_minutes_and_seconds_together() -> None:
    assert parse_terminate_notice_ms("5m30s") == 330_000


def test_a_driver_takes_hours_and_minutes_together() -> None:
    table = f'{{ type = "command", run = "x", timeout = "{LONG}" }}'
    fleet = read_toml(f'driver = {table}\n[[vm]]\nname = "a"\n')
    assert fleet.resources[0].place.driver_settings["timeout"] == LONG


def test_the_api_takes_hours_and_minutes_together() -> None:
    assert read_duration_ms("notice", LONG) == LONG_MS
    body = f'{{"name": "ci", "role": "viewer", "expires": "{LONG}"}}'.encode()
    assert read_body(TokenBody, body, "application/json", optional=False).expires == LONG


def test_options_take_hours_and_minutes_together() -> None:
    assert parse_option_ms(LONG) == LONG_MS
    assert duration(LONG) == "PT1H30M"


def test_a_scenario_takes_hours_and_minutes_together() -> None:
    step = f'[[step]]\nschedule = {{ type = "reboot", targets = "a", notice = "{LONG}" }}\n'
    (found,) = read_scenario(f'title = "x"\n{step}').steps
    assert isinstance(found.action, Schedule)
    assert found.action.notice_ms == LONG_MS


def test_the_agents_file_takes_hours_and_minutes_together() -> None:
    rule = f'[[rule]]\nname = "x"\ntime_left = {{ max = "{LONG}" }}\n'
    span = read_config(rule).rules[0].time_left
    assert span is not None
    assert span.max_s == LONG_MS / 1000


def test_a_test_in_python_takes_hours_and_minutes_together() -> None:
    assert span_ms(LONG) == LONG_MS


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (-3, "0 s"),
        (7.9, "7 s"),
        (60, "1 min"),
        (3_900, "1 h 5 min"),
        (90_061, "1 d 1 h"),
    ],
)
def test_a_time_is_told_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert human_s(seconds) == text


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [(0, "0 s"), (1, "1 ms"), (999, "999 ms"), (1_000, "1 s"), (1_999, "1 s"), (60_000, "1 min"),
     (911_000, "15 min 11 s"), (90_061_000, "1 d 1 h 1 min 1 s")],
)  # fmt: skip
def test_an_exact_duration_in_words(duration_ms: int, text: str) -> None:
    assert human_ms(duration_ms) == text
