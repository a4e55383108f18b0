"""Finds the events that fit a filter, page by page.

Theory of operation. The list is sorted by creation and id. A filter names types, sources and
phases, and each of these has only a few values. One combination of the three is called a kind. A
store keeps the events of each kind sorted, and merges a page from the newest events of each kind
that the filter allows. So every page costs the same, even if its events are old or rare.
"""

from collections.abc import Callable, Iterable, Mapping

from fairwarning.core.instants import Instant
from fairwarning.core.model import Event, EventId, EventType, Phase, ScopeId, Source
from fairwarning.engine.protocols import Choice, Mark
from fairwarning.stores.codec import Row
from fairwarning.stores.statements import Statement, Value

_NEWEST = Mark(created_ms=Instant(2**63 - 1), event_id=EventId(""))


def place_of(event: Event) -> tuple[Instant, EventId]:
    """Returns the sort key of an event. The list has the highest key, the newest event, first."""
    return event.created_ms, event.id


def fits(choice: Choice, scope_id: ScopeId, event: Event) -> bool:
    return (
        (not choice.phases or event.phase in choice.phases)
        and (not choice.types or event.type in choice.types)
        and (not choice.sources or event.source in choice.sources)
        and choice.scope_id in {None, scope_id}
        and (choice.instance is None or choice.instance in event.resources)
    )


def page_of(
    choice: Choice, before: Mark | None, limit: int, listed: Callable[[list[str]], str]
) -> Statement:
    """Returns the query of a page: the newest `limit` events before the mark `before`. `listed`
    writes a list of words in the form that the SQL dialect needs.
    """
    end = before or _NEWEST
    values: Mapping[str, Value] = {
        "types": listed(_words(choice.types or EventType)),
        "sources": listed(_words(choice.sources or Source)),
        "phases": listed(_words(choice.phases or Phase)),
        "scope_id": choice.scope_id,
        "instance": choice.instance,
        "created_ms": end.created_ms,
        "id": end.event_id,
        "limit": limit,
    }
    return Statement(_statement_for(choice), values)


def _words(chosen: Iterable[EventType | Source | Phase]) -> list[str]:
    return sorted({each.value for each in chosen})


def _statement_for(choice: Choice) -> str:
    if choice.instance is not None:
        return "events_of_instance"
    if choice.scope_id is not None:
        return "events_of_scope"
    return "events_of_kinds" if choice.types or choice.sources or choice.phases else "events"


def counts_of(rows: Iterable[Row]) -> Mapping[tuple[EventType, Phase], int]:
    counts: dict[tuple[EventType, Phase], int] = {}
    for type, phase, number in rows:
        kind = EventType(type), Phase(phase)
        counts[kind] = counts.get(kind, 0) + number
    return counts
