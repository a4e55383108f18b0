"""This module checks a rollout before anything is announced."""

from collections.abc import Callable, Iterable, Sequence
from zoneinfo import ZoneInfo

from fairwarning.common.durations import human_ms
from fairwarning.core.instants import DAY_MS, SECOND_MS, Instant
from fairwarning.core.journal_text import listed
from fairwarning.core.limits import refuse_description, refuse_duration, refuse_text
from fairwarning.core.model import EventType, Roster, Scope
from fairwarning.core.notice import not_before
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.rollouts.model import DAY_MINUTES, Blackout, RolloutSpec, RolloutStep, Window
from fairwarning.core.rollouts.step_length import ASSUMED_DURATION_S, known_duration_s, needed_ms
from fairwarning.core.rollouts.windows import HORIZON_DAYS, next_opening, open_periods

TYPES = (EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY)
NAME_CHARS_MAX = 100  # The name must fit into a line of a table.
SCOPES_MAX = 100_000  # The largest number that was measured.
SCOPES_AT_ONCE_MAX = 10_000  # Each look at a rollout reads all scopes that are under way.
PAUSE_MS_MAX = 30 * DAY_MS  # A longer pause is most likely a mistake.
WINDOWS_MAX = 50  # Each estimate searches all windows.
BLACKOUTS_MAX = 400  # One for each day of the horizon.


def refuse_spec(spec: RolloutSpec) -> None:
    """Raise Refused if the request itself breaks a rule, whatever the fleet is."""
    if spec.type not in TYPES:
        raise _invalid(f"a rollout does {', '.join(TYPES)}, and not {spec.type}; choose one")
    _refuse_texts(spec)
    _refuse_numbers(spec)
    _refuse_zone(spec.time_zone)
    _refuse_many("windows", len(spec.windows), WINDOWS_MAX)
    _refuse_many("blackouts", len(spec.blackouts), BLACKOUTS_MAX)
    for window in spec.windows:
        _refuse_window(window)
    for blackout in spec.blackouts:
        _refuse_blackout(blackout)


def refuse_steps(steps: tuple[RolloutStep, ...]) -> None:
    if not steps:
        raise _invalid("none of the scopes has an instance; declare some, or name other scopes")
    refuse_many_scopes(len({step.scope_id for step in steps}))


def refuse_many_scopes(count: int) -> None:
    _refuse_many("scopes", count, SCOPES_MAX)


def refuse_misfit(
    spec: RolloutSpec, scopes: Iterable[Scope], now: Instant, fits: set[int] | None = None
) -> None:
    """Raise Refused if the notice is too short for a scope, or too long for every window.

    `fits` has the lengths that are known to fit, for a caller that checks scopes one by one.
    """
    fits = set() if fits is None else fits
    for scope in scopes:
        roster = scope.roster
        not_before(roster, spec.type, now, notice_ms=spec.notice_ms, not_before_ms=None)
        if (needed := needed_ms(spec, roster)) not in fits:
            _refuse_if_never(spec, roster, now, needed)
            fits.add(needed)


def _refuse_if_never(spec: RolloutSpec, roster: Roster, now: Instant, needed: int) -> None:
    if next_opening(spec.calendar, now, needed) is not None:
        return
    longest = max(
        (end - begin for begin, end in open_periods(spec.calendar, now) if end), default=0
    )
    if not longest:
        raise _invalid(
            f"the windows do not open within {HORIZON_DAYS} days; change them, or the blackouts"
        )
    raise _invalid(
        f"{roster.resource!r} needs {human_ms(needed)} from the announcement to the end "
        f"of the impact, and no window is open for more than {human_ms(longest)} at a "
        "time; give less notice, or make the windows longer"
    )


def _refuse_texts(spec: RolloutSpec) -> None:
    refuse_text("name", spec.name)
    if len(spec.name) > NAME_CHARS_MAX:
        raise _invalid(f"the name has {len(spec.name)} characters; use at most {NAME_CHARS_MAX}")
    refuse_description(spec.description or "")


def _refuse_numbers(spec: RolloutSpec) -> None:
    refuse_duration(spec.duration_s or 0)
    if spec.notice_ms is not None and spec.notice_ms < 0:
        raise _invalid("the notice is negative; leave it out to give the minimum")
    if not 1 <= spec.scopes_at_once <= SCOPES_AT_ONCE_MAX:
        raise _invalid(
            f"{spec.scopes_at_once} scopes at once is out of range; use 1 to {SCOPES_AT_ONCE_MAX}"
        )
    if not 0 <= spec.pause_ms <= PAUSE_MS_MAX:
        raise _invalid(f"the pause is out of range; use 0s to {human_ms(PAUSE_MS_MAX)}")


def _refuse_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise _invalid(
            f"{name!r} is no time zone that we know; use a name like 'Europe/Berlin' or 'UTC'"
        ) from None


def _refuse_window(window: Window) -> None:
    days_are_good = window.days and all(0 <= day <= 6 for day in window.days)
    opens, closes = window.from_minute, window.to_minute
    if not days_are_good:
        raise _invalid(f"the window {opens}-{closes} names no day of the week; name one")
    if not (0 <= opens < DAY_MINUTES and 0 <= closes <= DAY_MINUTES) or opens == closes:
        raise _invalid(f"the window '{window}' is empty; write 00:00-24:00 for the whole day")


def _refuse_blackout(blackout: Blackout) -> None:
    if blackout.last < blackout.first:
        raise _invalid(f"the blackout {blackout} ends before it begins; swap the dates")


def _refuse_many(what: str, count: int, most: int) -> None:
    if count > most:
        raise _invalid(f"a rollout has at most {most} {what}, and this has {count}; make several")


def _invalid(message: str) -> Refused:
    return Refused(Code.ROLLOUT_INVALID, message)


def advice(spec: RolloutSpec, scopes: Sequence[Scope]) -> tuple[str, ...]:
    """Return warnings for the operator. Each is a sentence with the scopes that it is about."""
    said = [
        f"{listed(found)}: {sentence}"
        for applies, sentence in _ABOUT_SCOPES
        if (found := [scope.id for scope in scopes if applies(scope)])
    ]
    if known_duration_s(spec) < 0:
        assumed = human_ms(ASSUMED_DURATION_S[spec.type] * SECOND_MS)
        said.append(
            f"nobody says how long a {spec.type} takes, so the plan assumes {assumed}, and the "
            "windows are kept for its begin only; give a duration"
        )
    return tuple(said)


def _is_unheard(scope: Scope) -> bool:
    return bool(scope.roster.live) and scope.last_seen_ms is None


def _is_silent(scope: Scope) -> bool:
    return bool(scope.roster.live) and scope.last_seen_ms is not None and not scope.is_activated


def _is_all_at_once(scope: Scope) -> bool:
    live = scope.roster.live
    return len(live) > 1 and len({each.update_domain for each in live}) == 1


_ABOUT_SCOPES: tuple[tuple[Callable[[Scope], bool], str], ...] = (
    (lambda scope: not scope.roster.live, "there is no instance, so nothing will happen"),
    (
        _is_unheard,
        "no instance has ever asked for its events, so nobody will hear of this; see that they "
        "poll the metadata endpoint",
    ),
    (
        _is_silent,
        "no instance has asked for its events for a day, so perhaps nobody will hear of this",
    ),
    (_is_all_at_once, "all instances are in one update domain, and go down together"),
    (
        lambda scope: bool(scope.unfinished),
        "other events are pending there; steps that have to wait for them happen later than "
        "planned",
    ),
)
