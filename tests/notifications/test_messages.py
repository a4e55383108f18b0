"""What a message says, what a template may say, and who wants to hear it. All pure."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fairwarning.core.instants import HOUR_MS, later
from fairwarning.core.model import EventType, ScopeId, Source
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.transitions import Approved, AttemptFailed, Noted
from fairwarning.engine.protocols import Position
from fairwarning.notifications.delivery_rules import (
    JITTER,
    LEASE_MS,
    PAUSES_MS,
    is_free_for,
    is_meant,
    may_want,
    needs_renewal,
    next_try_ms,
    taken_by,
    wants,
)
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
    ALL_KINDS,
    Filters,
    TargetDraft,
    TargetKind,
    Template,
)
from fairwarning.notifications.records import Cursor
from fairwarning.notifications.sender import CHAT_TIMEOUT_S
from fairwarning.notifications.targets import checked_target
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


@pytest.mark.parametrize(
    ("filters", "is_wanted"),
    [
        (Filters(), True),
        (Filters(kinds=("Started",)), False),
        (Filters(types=(EventType.REBOOT, EventType.FREEZE)), True),
        (Filters(types=(EventType.FREEZE,)), False),
        (Filters(sources=(Source.PLATFORM,)), True),
        (Filters(sources=(Source.USER,)), False),
        (Filters(scopes=("web",)), True),
        (Filters(scopes=("availability-set/web", "db")), True),
        (Filters(scopes=(WEB_ID,)), True),
        (Filters(scopes=("eb",)), False),
        (Filters(scopes=("default",)), False),
    ],
)
def test_filters(filters: Filters, is_wanted: bool) -> None:
    assert (may_want(filters, entry()) and wants(filters, REBOOT)) is is_wanted


def test_a_scale_set_is_meant_with_all_its_groups_or_with_one() -> None:
    second = entry(scope_id=ScopeId("0000/default/scale-set/workers/1"))
    assert may_want(Filters(scopes=("workers",)), second)
    assert may_want(Filters(scopes=("workers/1",)), second)
    assert not may_want(Filters(scopes=("workers/0",)), second)


def test_whoever_asks_for_a_type_or_source_wants_events_only() -> None:
    assert wants(Filters(), None)
    assert not wants(Filters(types=(EventType.REBOOT,)), None)
    assert not wants(Filters(sources=(Source.USER,)), None)


def test_housekeeping_is_no_kind_because_the_journal_has_none() -> None:
    assert "LeaseRenewed" not in ALL_KINDS
    assert {"Scheduled", "AttemptFailed", "Noted", "RosterDeclared"} <= ALL_KINDS


GOOD = {"name": "ops", "kind": TargetKind.WEBHOOK, "url": "https://example.com/x"}
WHSEC = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.mark.parametrize(
    "slip",
    [
        {"name": ""},
        {"name": "a\nb"},
        {"name": "a" * 101},
        {"url": "example.com/x"},
        {"url": "ftp://example.com/x"},
        {"url": "https://"},
        {"url": "https://[::1/"},
        {"url": "https://example.com:99999/"},
        {"url": "https://example.com/" + "x" * 2_000},
        {"secret": "hunter2"},
        {"secret": "whsec_aGk="},
        {"kind": TargetKind.APPRISE, "url": "slack://x", "secret": WHSEC},
        {"kind": TargetKind.APPRISE, "url": "slack"},
        {"filters": Filters(kinds=())},
        {"filters": Filters(kinds=("Rebooted",))},
        {"filters": Filters(scopes=("",))},
        {"filters": Filters(scopes=("web",) * 101)},
        {"template": Template(title="$nonsense")},
    ],
    ids=str,
)
def test_a_target_that_makes_no_sense_is_refused(slip: dict[str, object]) -> None:
    draft = TargetDraft(**{**GOOD, **slip})  # type: ignore[arg-type]
    with pytest.raises(Refused) as refused:
        checked_target(draft, id="1", new_secret=WHSEC, now=T0, by=ME)
    assert refused.value.code is Code.NOTIFICATION_INVALID
    assert "hunter2" not in refused.value.message


def test_a_webhook_keeps_the_secret_it_brings_and_gets_one_if_it_brings_none() -> None:
    mine = "whsec_" + "AAAA" * 8
    for given_secret, kept in ((mine, mine), ("", WHSEC)):
        draft = TargetDraft(**GOOD, secret=given_secret)  # type: ignore[arg-type]
        target = checked_target(draft, id="1", new_secret=WHSEC, now=T0, by=ME)
        assert target.secret == kept


def test_a_chat_has_no_secret_to_sign_with() -> None:
    draft = TargetDraft(name="chat", kind=TargetKind.APPRISE, url="json://127.0.0.1")
    assert checked_target(draft, id="1", new_secret=WHSEC, now=T0, by=ME).secret == ""


@given(st.integers(1, 20), st.floats(0, 1, exclude_max=True))
def test_pauses_stay_near_the_table_and_end_with_it(attempts: int, dice: float) -> None:
    again = next_try_ms(attempts, T0, dice)
    if attempts > len(PAUSES_MS):
        assert again is None
    else:
        assert again is not None
        pause = PAUSES_MS[attempts - 1]
        assert pause * (1 - JITTER) - 1 <= again - T0 <= pause * (1 + JITTER) + 1


def test_a_lease_keeps_others_away_until_it_runs_out_or_the_clock_was_set_back() -> None:
    taken = taken_by("a", Cursor(position=Position("1")), T0)
    assert is_free_for("a", taken, T0)
    assert not is_free_for("b", taken, T0)
    assert not is_free_for("b", taken, type(T0)(T0 + LEASE_MS - 1))
    assert is_free_for("b", taken, type(T0)(T0 + LEASE_MS))
    assert is_free_for("b", taken, type(T0)(T0 - HOUR_MS))
    assert is_free_for("b", Cursor(position=Position("1")), T0)


def test_a_lease_is_renewed_when_half_of_it_is_over() -> None:
    """A try takes no longer than the other half."""
    taken = taken_by("a", Cursor(position=Position("1")), T0)
    assert not needs_renewal(taken, later(T0, LEASE_MS // 2))
    assert needs_renewal(taken, later(T0, LEASE_MS // 2 + 1))
    assert CHAT_TIMEOUT_S * 1000 <= LEASE_MS // 2


def test_only_a_scale_set_has_groups() -> None:
    assert is_meant(ScopeId("0000/default/scale-set/web/7"), "web")
    assert not is_meant(ScopeId("0000/default/vm/7"), "vm")
    assert not is_meant(ScopeId("0000/default/availability-set/7"), "default/availability-set")


def test_a_title_and_a_text_have_a_length() -> None:
    title, text = fill(Template(title="$why", body="$why"), {"why": "x" * 99_999})
    assert (len(title), len(text)) == (TITLE_CHARS_MAX, TEXT_CHARS_MAX)


@pytest.mark.parametrize(("duration_s", "words"), [(-1, "unknown"), (0, "0 s"), (1, "1 s")])
def test_an_impact_of_no_time_is_no_unknown_one(duration_s: int, words: str) -> None:
    event = replace(REBOOT, duration_s=duration_s)
    approved = entry(Approved(event_id=E1, by=ME, at_ms=T0))
    assert words_of(approved, event)["duration"] == words
