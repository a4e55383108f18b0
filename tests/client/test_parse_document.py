"""Documents of any year and maker are understood as far as they can be."""

import contextlib
import json
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.client.model import Status
from fairwarning.client.parse_document import (
    BadDocument,
    read_date,
    read_document,
    read_instance,
)

WHEN = datetime(2022, 4, 11, 22, 26, 58, tzinfo=UTC)
EVENT = {
    "EventId": "c7061bac-afdc-4513-b24b-aa5f13a16123",
    "EventStatus": "Scheduled",
    "EventType": "Freeze",
    "ResourceType": "VirtualMachine",
    "Resources": ["web-0", "web-1"],
    "NotBefore": "Mon, 11 Apr 2022 22:26:58 GMT",
    "Description": "Host server is undergoing maintenance.",
    "EventSource": "Platform",
    "DurationInSeconds": 5,
}


def document(*events: object, incarnation: object = 7) -> bytes:
    return json.dumps({"DocumentIncarnation": incarnation, "Events": events}).encode()


def test_a_whole_event() -> None:
    found = read_document(document(EVENT), version="2020-07-01")
    assert found.incarnation == 7
    (event,) = found.events
    assert event.id == EVENT["EventId"].upper()  # type: ignore[attr-defined]
    assert event.not_before == WHEN
    assert event.resources == ("web-0", "web-1")
    assert (event.source, event.duration_s) == ("Platform", 5)
    assert found.event("C7061BAC-AFDC-4513-B24B-AA5F13A16123") is event


@pytest.mark.parametrize(
    "text",
    [
        "Mon, 11 Apr 2022 22:26:58 GMT",
        "2022-04-11T22:26:58Z",
        "2022-04-12T00:26:58+02:00",
        "2022-04-11T22:26:58",
        "04/11/2022 22:26:58",
        "4/11/2022 10:26:58 PM",
        "4/11/2022 10:26:58 PM +00:00",
        "4/12/2022 12:26:58 AM +02:00",
        "04/11/2022 22:26:58 +00:00",
    ],
)
def test_every_form_of_date(text: str) -> None:
    assert read_date(text) == WHEN


@pytest.mark.parametrize("text", ["", "  ", "soon", None, 5, "Mon, 99 Apr 2022 22:26:58 GMT"])
def test_no_date_is_none_and_no_error(text: object) -> None:
    assert read_date(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "Mon, 01 Jan 0001 00:00:00 GMT",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59.9999999-01:00",
        "12/31/9999 11:59:59 PM",
    ],
)
def test_the_ends_of_time_are_no_dates(text: str) -> None:
    """Nobody can reckon with them: an hour before the first day is an error."""
    assert read_date(text) is None


def test_a_started_event_has_no_not_before() -> None:
    started = {**EVENT, "EventStatus": "Started", "NotBefore": ""}
    (event,) = read_document(document(started), version="2020-07-01").events
    assert (event.status, event.not_before) == (Status.STARTED, None)


def test_the_first_version_writes_an_underscore_before_each_name() -> None:
    raw = {**EVENT, "Resources": ["_web-0"]}
    assert read_document(document(raw), version="2017-03-01").events[0].resources == ("web-0",)
    assert read_document(document(raw), version="2017-08-01").events[0].resources == ("_web-0",)


def test_what_a_version_lacks_is_empty() -> None:
    old = {key: EVENT[key] for key in list(EVENT)[:6]}
    (event,) = read_document(document(old), version="2019-01-01").events
    assert (event.description, event.source, event.duration_s) == ("", "", None)


def test_unknown_types_and_fields_do_no_harm() -> None:
    odd = {**EVENT, "EventType": "Defragmentation", "More": {"a": [1]}, "DurationInSeconds": -1}
    (event,) = read_document(document(odd), version="2020-07-01").events
    assert (event.type, event.duration_s) == ("Defragmentation", None)


def test_an_event_twice_is_one_event_and_the_further_one_counts() -> None:
    started = {**EVENT, "EventStatus": "Started"}
    for pair in ((EVENT, started), (started, EVENT)):
        (event,) = read_document(document(*pair), version="2020-07-01").events
        assert event.status is Status.STARTED


@pytest.mark.parametrize("body", [b"", b" ", b"<html>", b"[]", b"null", b'{"error":"x"}', b"\xff"])
def test_what_is_no_document_says_so(body: bytes) -> None:
    with pytest.raises(BadDocument):
        read_document(body, version="2020-07-01")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from([*EVENT, "Events", "DocumentIncarnation"]), inner)
        ),
        max_leaves=20,
    )
)
def test_any_json_is_a_document_or_is_refused(value: object) -> None:
    with contextlib.suppress(BadDocument):
        read_document(json.dumps(value).encode(), version="2017-03-01")


def test_who_we_are() -> None:
    compute = {
        "name": "web_7",
        "resourceGroupName": "g",
        "tags": "a:b;c:d:e",
        "vmScaleSetName": "web",
    }
    found = read_instance(json.dumps({"compute": compute}).encode())
    assert (found.name, found.scale_set) == ("web_7", "web")
    assert found.tags == {"a": "b", "c": "d:e"}
    with pytest.raises(BadDocument):
        read_instance(b'{"compute":{}}')


@given(st.datetimes(timezones=st.just(UTC)).filter(lambda when: 1990 <= when.year <= 2100))
def test_the_usual_form_of_a_date_is_read_as_the_standard_library_does(when: datetime) -> None:
    text = format_datetime(when, usegmt=True)
    assert read_date(text) == parsedate_to_datetime(text)


@pytest.mark.parametrize(
    ("said", "duration_s"),
    [(9, 9), ("9", 9), (0, 0), (-1, None), ("-1", None), (True, None), ("soon", None), (9.5, None)],
)
def test_a_duration_is_whole_seconds_or_unknown(said: object, duration_s: int | None) -> None:
    (event,) = read_document(
        document(EVENT | {"DurationInSeconds": said}), version="2020-07-01"
    ).events
    assert event.duration_s == duration_s
