"""Makes the named statements that store `Writes` and records, for every SQL dialect.

All transactions lock rows in the same order: scopes, then addresses, then events, each sorted by
key. So no two transactions wait for each other. If a unique key is already taken, `refuse_taken`
raises the refusal.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from fairwarning import __version__
from fairwarning.core.instants import Instant
from fairwarning.core.model import Actor, Event, EventId, ScopeId
from fairwarning.core.new_events import refuse_used_id
from fairwarning.core.transitions import Noted, Transition
from fairwarning.engine.protocols import Fence, FenceBroken, Record
from fairwarning.stores.codec import Row, encode
from fairwarning.stores.listeners import GLOBAL_REVISION, GLOBAL_SCOPE, record_changed
from fairwarning.stores.migrations import FLOOR_SINCE, Migration
from fairwarning.stores.writes import (
    Writes,
    event_id_of,
    refuse_address_in_use,
    refuse_scope_exists,
)

Value = str | int | None

# Rows are locked in this order (see the module's docstring).
_RANKS = (
    ("add_scope", "change_scope"),
    ("add_roster", "change_roster"),
    ("remove_address", "add_address"),
    ("add_event",),
    ("change_event",),
    ("add_event_instances",),
    ("change_event_instances",),
    ("append_entry",),
)
_RANK_OF = {name: rank for rank, names in enumerate(_RANKS) for name in names}
_CONTESTED = {
    "add_scope": "id",
    "remove_address": "address",
    "add_address": "address",
    "add_event": "id",
}


class Statement(Struct, frozen=True):
    """The name of a query in `queries.sql`, and the values of its parameters."""

    name: str
    values: Mapping[str, Value]


def creation(
    planned: Iterable[Writes], *, at_ms: Instant, by: Actor, why: str
) -> tuple[Statement, ...]:
    return _in_lock_order(
        statement
        for writes in planned
        for statement in (
            Statement("add_scope", _scope_values(writes)),
            Statement("add_roster", _roster_values(writes)),
            *_rows_around(writes, at_ms, by, why),
        )
    )


def change(writes: Writes, *, at_ms: Instant, by: Actor, why: str) -> tuple[Statement, ...]:
    statements = [Statement("change_scope", _scope_values(writes))]
    if writes.roster_changed:
        statements.append(Statement("change_roster", _roster_values(writes)))
    return _in_lock_order((*statements, *_rows_around(writes, at_ms, by, why)))


def new_deadline(scope_id: ScopeId, next_deadline_ms: Instant | None) -> Statement:
    return Statement("set_deadline", {"id": scope_id, "next_deadline_ms": next_deadline_ms})


def seen(notes: Mapping[ScopeId, Instant]) -> tuple[Statement, ...]:
    return tuple(
        Statement("note_seen", {"id": id, "at_ms": at_ms}) for id, at_ms in sorted(notes.items())
    )


def note(transition: Noted, *, at_ms: Instant, by: Actor, why: str) -> Statement:
    """Returns the statement that adds a history line that belongs to no scope."""
    return _entry(GLOBAL_SCOPE, GLOBAL_REVISION, transition, at_ms, by, why)


def contested_key(statement: Statement) -> str | None:
    """Returns the statement's unique key that another transaction may use too, or None."""
    column = _CONTESTED.get(statement.name)
    return None if column is None else str(statement.values[column])


def refuse_taken(name: str, key: str) -> None:
    """Raises the refusal for a unique key that is taken, if the statement `name` has one."""
    match name:
        case "add_scope":
            refuse_scope_exists(ScopeId(key))
        case "add_address":
            refuse_address_in_use(key)
        case "add_event":
            refuse_used_id(EventId(key))
        case _:
            pass


def _rows_around(writes: Writes, at_ms: Instant, by: Actor, why: str) -> Iterator[Statement]:
    id = writes.scope.id
    for address in writes.addresses_removed:
        yield Statement("remove_address", {"address": address})
    for address, name in writes.addresses_added:
        yield Statement("add_address", {"address": address, "scope_id": id, "instance": name})
    for event in writes.new_events:
        values = _event_values(id, event)
        yield Statement("add_event", values)
        yield Statement("add_event_instances", values)
    for event in writes.changed_events:
        values = _event_values(id, event)
        yield Statement("change_event", values)
        if event.id in writes.old_phases:
            was = writes.old_phases[event.id].value
            yield Statement("change_event_instances", {**values, "was": was})
    for transition in writes.entries:
        yield _entry(id, writes.scope.revision, transition, at_ms, by, why)


def _in_lock_order(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    return tuple(sorted(statements, key=_lock_order))


def _lock_order(statement: Statement) -> tuple[int, str]:
    name = statement.name
    # This saves a call for most statements, and every change is sorted here.
    key = contested_key(statement) if name in _CONTESTED else None
    return _RANK_OF[name], key or ""


def _scope_values(writes: Writes) -> Mapping[str, Value]:
    scope = writes.scope
    return {
        "id": scope.id,
        "subscription": scope.roster.subscription,
        "revision": scope.revision,
        "incarnation": scope.incarnation,
        "activated_ms": scope.activated_ms,
        "last_seen_ms": scope.last_seen_ms,
        "next_deadline_ms": writes.next_deadline_ms,
        "pending_operations": writes.pending_operations,
        "events": encode(scope.events),
    }


def _roster_values(writes: Writes) -> Mapping[str, Value]:
    return {"scope_id": writes.scope.id, "body": encode(writes.scope.roster)}


def _event_values(scope_id: ScopeId, event: Event) -> Mapping[str, Value]:
    return {
        "id": event.id,
        "scope_id": scope_id,
        "type": event.type.value,
        "source": event.source.value,
        "phase": event.phase.value,
        "created_ms": event.created_ms,
        "ended_ms": event.ended_ms,
        "body": encode(event),
        "instances": encode(sorted(set(event.resources))),
    }


def _entry(
    scope_id: ScopeId, revision: int, transition: Transition, at_ms: Instant, by: Actor, why: str
) -> Statement:
    values: Mapping[str, Value] = {
        "scope_id": scope_id,
        "revision": revision,
        "at_ms": at_ms,
        "actor_kind": by.kind,
        "actor_name": by.name,
        "why": why,
        "kind": type(transition).__name__,
        "event_id": event_id_of(transition),
        "body": encode(transition),
    }
    return Statement("append_entry", values)


def put_record_statement(kind: str, key: str, body: str, expected: int | None) -> Statement:
    """Returns a statement that writes a record, if its revision is `expected`.

    With 0 there must be no such record yet, and with None any revision will do. The statement
    returns one row with the new revision, or no row if it did not write.
    """
    values = {"kind": kind, "key": key, "body": body, "expected": expected}
    names = {None: "put_record", 0: "add_record"}
    return Statement(names.get(expected, "change_record"), values)


def record_put(statement: Statement, rows: list[Row]) -> Record:
    """Returns the record that was written. Raises RecordChanged if there is no row."""
    kind, key, body = (str(statement.values[name]) for name in ("kind", "key", "body"))
    if not rows:
        raise record_changed(kind, key)
    return Record(kind=kind, key=key, revision=rows[0][0], body=body)


def delete_record_statement(kind: str, key: str) -> Statement:
    """Returns a statement that deletes a record and returns a row with its revision, if any."""
    return Statement("drop_record", {"kind": kind, "key": key})


def was_deleted(statement: Statement, expected: int | None, rows: list[Row]) -> bool:
    """Returns whether a record was deleted. Raises RecordChanged if it was not at `expected`."""
    revision = rows[0][0] if rows else 0
    if expected not in {None, revision}:
        raise record_changed(str(statement.values["kind"]), str(statement.values["key"]))
    return bool(rows)


def fence_statements(fences: Iterable[Fence]) -> list[Statement]:
    """Returns a statement for each fence, which checks the record and writes `then`, if any. The
    statement returns the kind and key of the record, or no row if the record has changed.
    """
    return [
        Statement(
            "hold_record" if fence.then is None else "mark_record",
            {
                "kind": fence.record.kind,
                "key": fence.record.key,
                "expected": fence.record.revision,
                "expected_body": fence.record.body,
                "body": fence.then,
            },
        )
        for fence in fences
    ]


def refuse_broken_fences(fences: Iterable[Fence], rows: Sequence[Row]) -> None:
    """Raises FenceBroken if a fence has no row in `rows`, the rows of all `fence_statements`."""
    found = {(kind, key) for kind, key in rows}
    for fence in fences:
        if (fence.record.kind, fence.record.key) not in found:
            raise FenceBroken(fence)


def migration_records(migration: Migration) -> list[Statement]:
    """Returns the statements that record that a migration has run, and by which program."""
    version = migration.version
    records = [Statement("record_version", {"version": version})]
    if version >= FLOOR_SINCE:
        maker: Mapping[str, Value] = {"version": version, "program": __version__}
        records.append(Statement("record_program", maker))
    if migration.raises_floor:
        records.append(Statement("raise_floor", {"floor": migration.oldest_node}))
    return records
