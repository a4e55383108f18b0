"""What is refused before anything is announced, and the sentence that says why."""

import pytest
from msgspec.structs import replace

from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS
from fairwarning.core.model import EventType
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.rollouts.model import RolloutSpec, Window
from fairwarning.core.rollouts.plan import preview
from fairwarning.core.rollouts.windows import parse_blackout, parse_window
from tests.core.rollouts.test_advance import MONDAY
from tests.core.rollouts.world import availability_set

REBOOT = RolloutSpec(type=EventType.REBOOT)


def refusal(spec: RolloutSpec, *, instances: int = 2, test: bool = False) -> Refused:
    with pytest.raises(Refused) as refused:
        preview(spec, [availability_set("web", instances, 2, test=test)], MONDAY)
    return refused.value


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (replace(REBOOT, type=EventType.PREEMPT), "Freeze, Reboot, Redeploy, and not Preempt"),
        (replace(REBOOT, time_zone="Europe/Berlyn"), "'Europe/Berlyn' is no time zone"),
        (replace(REBOOT, time_zone="Europe"), "'Europe' is no time zone"),
        (replace(REBOOT, time_zone="../etc/passwd"), "is no time zone"),
        (replace(REBOOT, time_zone=""), "is no time zone"),
        (replace(REBOOT, scopes_at_once=0), "0 scopes at once is out of range; use 1 to"),
        (replace(REBOOT, pause_ms=-1), "the pause is out of range"),
        (replace(REBOOT, pause_ms=31 * DAY_MS), "the pause is out of range"),
        (replace(REBOOT, notice_ms=-1), "the notice is negative"),
        (replace(REBOOT, name="x" * 101), "the name has 101 characters"),
        (
            replace(REBOOT, windows=(Window(days=(), from_minute=0, to_minute=60),)),
            "names no day of the week",
        ),
        (
            replace(REBOOT, windows=(Window(days=(0,), from_minute=60, to_minute=60),)),
            "is empty; write 00:00-24:00",
        ),
        (
            replace(REBOOT, windows=(parse_window("01:00-02:00"),) * 51),
            "at most 50 windows, and this has 51",
        ),
        (
            replace(REBOOT, blackouts=(parse_blackout("2026-01-01/2028-12-31"),)),
            "the windows do not open within 400 days",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(spec: RolloutSpec, says: str) -> None:
    refused = refusal(spec)
    assert refused.code is Code.ROLLOUT_INVALID
    assert says in refused.message


@pytest.mark.parametrize(
    "spec",
    [
        replace(REBOOT, notice_ms=0),
        replace(REBOOT, pause_ms=30 * DAY_MS),
        replace(REBOOT, scopes_at_once=10_000),
        replace(REBOOT, name="x" * 100),
        replace(REBOOT, description="x" * 1024),
        replace(REBOOT, duration_s=-1),
        replace(REBOOT, duration_s=7 * 24 * 3600),
        replace(REBOOT, windows=(parse_window("01:00-02:00"),) * 50),
        replace(REBOOT, blackouts=(parse_blackout("2026-12-24"),) * 400),
    ],
)
def test_every_limit_is_itself_allowed(spec: RolloutSpec) -> None:
    assert preview(spec, [availability_set("web", 2, 2, test=True)], MONDAY).steps


def test_a_notice_that_is_longer_than_every_window_is_refused_and_says_so() -> None:
    windows = (parse_window("daily 22:00-22:30"), parse_window("sat 10:00-10:45"))
    refused = refusal(replace(REBOOT, notice_ms=HOUR_MS, duration_s=60, windows=windows))
    assert refused.code is Code.ROLLOUT_INVALID
    assert refused.message == (
        "'web' needs 1 h 1 min 11 s from the announcement to the end of the impact, and no window "
        "is open for more than 45 min at a time; give less notice, or make the windows longer"
    )


def test_windows_that_touch_count_as_one_long_one() -> None:
    windows = (parse_window("daily 22:00-23:00"), parse_window("daily 23:00-23:30"))
    spec = replace(REBOOT, notice_ms=HOUR_MS, windows=windows)
    assert preview(spec, [availability_set("web", 1, 1)], MONDAY).steps


def test_less_than_the_minimum_notice_is_refused_but_for_rehearsals() -> None:
    spec = replace(REBOOT, notice_ms=5 * MINUTE_MS)
    assert refusal(spec).code is Code.NOTICE_TOO_SHORT
    assert preview(spec, [availability_set("web", 1, 1, test=True)], MONDAY).steps


def test_a_rollout_of_nothing_is_refused() -> None:
    assert "none of the scopes has an instance" in refusal(REBOOT, instances=0).message


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        (replace(REBOOT, description="x" * 1025), Code.DESCRIPTION_TOO_LONG),
        (replace(REBOOT, description="\ud800"), Code.TEXT_INVALID),
        (replace(REBOOT, name="\ud800"), Code.TEXT_INVALID),
        (replace(REBOOT, duration_s=-2), Code.DURATION_INVALID),
        (replace(REBOOT, notice_ms=400 * DAY_MS), Code.NOT_BEFORE_TOO_FAR),
    ],
)
def test_what_no_event_could_say_no_rollout_can(spec: RolloutSpec, code: Code) -> None:
    assert refusal(spec).code is code
