"""What an operator should know about a plan before it is carried out."""

from collections.abc import Callable, Sequence

from fairwarning.core.instants import SECOND_MS, format_iso_duration
from fairwarning.core.model import Scope
from fairwarning.core.rollouts.model import RolloutSpec
from fairwarning.core.rollouts.needs import ASSUMED_DURATION_S, known_duration_s

_NAMED_MAX = 5


def advice(spec: RolloutSpec, scopes: Sequence[Scope]) -> tuple[str, ...]:
    """Sentences, each once, with the scopes that it is about."""
    said = [
        f"{_names(found)}: {sentence}"
        for applies, sentence in _ABOUT_SCOPES
        if (found := [scope for scope in scopes if applies(scope)])
    ]
    if known_duration_s(spec) < 0:
        assumed = format_iso_duration(ASSUMED_DURATION_S[spec.type] * SECOND_MS)
        said.append(
            f"nobody says how long a {spec.type} takes, so the plan assumes {assumed}, and the "
            "windows are kept for its begin only; give a duration"
        )
    return tuple(said)


def _names(scopes: Sequence[Scope]) -> str:
    named = ", ".join(scope.id for scope in scopes[:_NAMED_MAX])
    more = len(scopes) - _NAMED_MAX
    return f"{named} and {more} more" if more > 0 else named


def _is_empty(scope: Scope) -> bool:
    return not scope.roster.live


def _is_unheard(scope: Scope) -> bool:
    return bool(scope.roster.live) and scope.last_seen_ms is None


def _is_silent(scope: Scope) -> bool:
    return bool(scope.roster.live) and scope.last_seen_ms is not None and not scope.is_activated


def _is_all_at_once(scope: Scope) -> bool:
    live = scope.roster.live
    return len(live) > 1 and len({each.update_domain for each in live}) == 1


def _is_busy(scope: Scope) -> bool:
    return bool(scope.unfinished)


_ABOUT_SCOPES: tuple[tuple[Callable[[Scope], bool], str], ...] = (
    (_is_empty, "there is no instance, so nothing will happen"),
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
        _is_busy,
        "other events are pending there; steps that have to wait for them happen later than "
        "planned",
    ),
)
