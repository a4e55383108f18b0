"""What a message says, and what a template may say. All pure."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.core.model import ScopeId
from fairwarning.core.transitions import Approved, AttemptFailed, Noted
from fairwarning.notifications.messages import (
    NAMES,
    TEXT_CHARS_MAX,
    TITLE_CHARS_MAX,
    cloud_event,
    fill,
    message_of,
    template_problem,
    trial_message,
    words_of,
)
from fairwarning.notifications.model import (
    Template,
)
from tests.core.builders import E1, T0
from tests.engine.harness import ME
from tests.notifications.entries import REBOOT, WEB_ID, entry


def test_a_cloud_event_has_the_attributes_of_the_standard() -> None:
    value = cloud_event(entry(), REBOOT)
    data = value.pop("data")
    assert value == {
        "specversion": "1.0",
        "id": "17",
        "source": f"/fairwarning/{WEB_ID}",
        "type": "com.fairwarning.event.scheduled.v1",
        "subject": E1,
        "time": "2020-09-13T12:26:40.000Z",
        "datacontenttype": "application/json",
    }
    assert isinstance(data, dict)
    assert data["event"]["notBefore"] == "2026-11-16T09:30:00.000Z"
    assert data["event"]["phase"] == "scheduled"
    assert data["entry"]["text"] == ("Reboot of web-0, web-1 announced for 2026-11-16 09:30:00 UTC")
    assert (data["entry"]["by"], data["entry"]["why"]) == ("operator:ana", "patch day")


@pytest.mark.parametrize(
    ("transition", "type"),
    [
        (Approved(event_id=E1, by=ME, at_ms=T0), "event.approved"),
        (AttemptFailed(event_id=E1, attempt=1, reason="x", retry_ms=T0), "event.attempt-failed"),
    ],
)
def test_the_type_says_the_kind(transition: Approved | AttemptFailed, type: str) -> None:
    assert cloud_event(entry(transition), REBOOT)["type"] == f"com.fairwarning.{type}.v1"


def test_what_is_about_no_event_can_be_told_too() -> None:
    note = entry(Noted(subject="token:ci", action="created"), ScopeId(""))
    message = message_of(note, None, Template())
    assert (message.title, message.text.splitlines()[0]) == ("noted", "token ci created")
    value = json.loads(message.body)
    assert value["type"] == "com.fairwarning.record.noted.v1"
    assert value["data"]["event"] is None


def test_a_message_is_the_same_every_time() -> None:
    assert message_of(entry(), REBOOT, Template()) == message_of(entry(), REBOOT, Template())


def test_a_trial_says_that_it_is_one() -> None:
    assert "Nothing has happened" in trial_message("test-1", "ops", T0).text


def test_every_documented_name_has_a_word() -> None:
    assert set(words_of(entry(), REBOOT)) == set(NAMES)


def test_a_title_is_one_line() -> None:
    title, _ = fill(Template(title="$description"), {"description": "a\r\nBcc: everybody"})
    assert title == "a Bcc: everybody"


@pytest.mark.parametrize(
    ("template", "says"),
    [
        (Template(title="$nonsense"), "$nonsense"),
        (Template(body="costs $ 5"), "$$"),
        (Template(body="  "), "empty"),
        (Template(body="x" * 5_000), "4000"),
    ],
)
def test_a_template_with_a_slip_is_refused_when_it_is_made(template: Template, says: str) -> None:
    problem = template_problem(template)
    assert problem is not None
    assert says in problem


@given(st.text())
def test_a_template_without_a_problem_can_be_filled(text: str) -> None:
    template = Template(title=text, body=text)
    if template_problem(template) is None:
        fill(template, words_of(entry(), REBOOT))


def test_a_title_and_a_text_have_a_length() -> None:
    title, text = fill(Template(title="$why", body="$why"), {"why": "x" * 99_999})
    assert (len(title), len(text)) == (TITLE_CHARS_MAX, TEXT_CHARS_MAX)
