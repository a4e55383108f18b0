"""Why a scheduled event has not started yet, as a sentence for whoever asks."""

from fairwarning.core.instants import Instant
from fairwarning.core.model import Event, Phase, Scope
from fairwarning.core.sentences import in_words, listed
from fairwarning.core.starting import barrier_falls_ms, in_the_way, is_held, start_cause


def waits(scope: Scope, event: Event, now: Instant) -> str | None:
    """None if it waits for nothing: it has started, is over, or starts this instant."""
    if event.phase is not Phase.SCHEDULED:
        return None
    if start_cause(event, now) is None:
        return f"for an approval; without one it starts at {in_words(event.not_before_ms)}"
    others = in_the_way(scope, event)
    started = [each for each in others if each.phase is Phase.STARTED]
    if started:
        return f"until {_named(started)} is over, which has started and is in its way"
    if not is_held(scope, event, now):
        return None
    falls_ms = barrier_falls_ms(scope, event)
    assert falls_ms is not None
    # Those that are due hold nobody any more.
    pending = [each for each in others if each.not_before_ms > now]
    return (
        f"until {_named(pending)} is approved too, as deletes of a scope go together; at "
        f"{in_words(falls_ms)} it starts anyway"
    )


def _named(events: list[Event]) -> str:
    first, *others = events
    more = f" and {len(others)} more" if others else ""
    return f"{first.type} {first.id} of {listed(first.resources)}{more}"
