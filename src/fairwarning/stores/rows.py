"""Turns rows of the SQL stores into values of the core. Columns are in the queries' order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairwarning.core.instants import Instant
from fairwarning.core.model import Actor, Event, Scope, ScopeId
from fairwarning.engine.protocols import Entry, Record
from fairwarning.stores.codec import decode_event, decode_events, decode_roster, decode_transition

Row = Sequence[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A scope as it is stored, with its deadline, which is not part of `Scope`."""

    scope: Scope
    next_deadline_ms: Instant | None


def stored_of(row: Row, roster: str) -> Stored:
    """Returns the scope of a row. Raises StoreDown if the row is damaged. `roster` is not in the
    row, because PostgreSQL must read it after it has locked the scope.
    """
    id, revision, incarnation, activated_ms, last_seen_ms, next_deadline_ms, events = row
    scope = Scope(
        id=id,
        roster=decode_roster(roster),
        revision=revision,
        incarnation=incarnation,
        activated_ms=activated_ms,
        last_seen_ms=last_seen_ms,
        events=decode_events(events),
    )
    return Stored(scope=scope, next_deadline_ms=next_deadline_ms)


def scope_of(row: Row) -> Scope:
    """Returns the scope of a row with the columns of `stored_of` and then the roster."""
    return stored_of(row[:-1], row[-1]).scope


def entry_of(row: Row) -> Entry:
    position, scope_id, revision, at_ms, actor_kind, actor_name, why, kind, body = row
    return Entry(
        position=position,
        scope_id=scope_id,
        revision=revision,
        at_ms=at_ms,
        by=Actor(kind=actor_kind, name=actor_name),
        why=why,
        transition=decode_transition(kind, body),
    )


def event_of(row: Row) -> tuple[ScopeId, Event]:
    scope_id, body = row
    return scope_id, decode_event(body)


def record_of(row: Row) -> Record:
    kind, key, revision, body = row
    return Record(kind=kind, key=key, revision=revision, body=body)
