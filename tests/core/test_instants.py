"""Instants as text, and back."""

import pytest

from fairwarning.core.instants import (
    Instant,
    format_rfc1123,
    format_rfc3339,
    parse_instant,
    to_whole_second,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1970-01-01T00:00:01Z", 1_000), ("1970-01-01T01:00:00.001+01:00", 1),
        ("1970-01-01T00:00:00.0019Z", 1), ("1969-12-31T23:59:59Z", -1_000),
        ("1970-01-01T00:00:00", None), ("1970-01-01", None), ("soon", None), ("", None),
        ("0001-01-01T00:00:00+01:00", None), ("9999-12-31T23:59:59-01:00", None),
    ],
)  # fmt: skip
def test_a_time_needs_its_zone(text: str, found: int | None) -> None:
    assert parse_instant(text) == found


@pytest.mark.parametrize(("instant", "rounded"), [(0, 0), (1, 1_000), (999, 1_000), (1_000, 1_000)])
def test_an_instant_is_rounded_up(instant: int, rounded: int) -> None:
    assert to_whole_second(Instant(instant)) == rounded


def test_both_forms_of_an_instant() -> None:
    instant = Instant(1_626_929_417_123)
    assert format_rfc1123(instant) == "Thu, 22 Jul 2021 04:50:17 GMT"
    assert format_rfc3339(instant) == "2021-07-22T04:50:17.123Z"
    assert parse_instant(format_rfc3339(instant)) == instant
