"""Measures a page of 50 out of 100,000 events, beside the same page with OFFSET.

Rounds are interleaved, so that a slow second hits both alike.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import uvloop
from psycopg.types.string import TextLoader

from benchmarks.control.history import Past, events, fleet
from fairwarning.core.model import (
    Event,
    EventType,
    InstanceName,
    Phase,
    ScopeId,
    Source,
    operator_actor,
)
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.protocols import Choice, Mark, Store
from fairwarning.stores.codec import decode_event, encode
from fairwarning.stores.event_queries import fits, place_of
from fairwarning.stores.postgres import PostgresStore
from fairwarning.stores.sqlite import SqliteStore
from fairwarning.stores.sqlite.connection import connect
from tests.support.postgres import PostgresServer

EVENTS = 100_000
PAGE = 50
OURS, PEERS = 200, 10
"""How often each page is read."""

_EVENT = ("id", "scope_id", "type", "source", "phase", "created_ms", "ended_ms", "body")
_PLACE = ("instance", "scope_id", "type", "source", "phase", "created_ms", "event_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    choice: Choice
    offset: int
    before: Mark | None


def choices(busy: ScopeId, quiet: ScopeId) -> dict[str, Choice]:
    often, seldom = InstanceName("web0-0"), InstanceName("web0-4")
    pending = (Phase.SCHEDULED, Phase.STARTED)
    rare = Choice(types=(EventType.PREEMPT,), phases=(Phase.FAILED,))
    return {
        "all": Choice(),
        "by phase": Choice(phases=(Phase.COMPLETED,)),
        "by phases, few": Choice(phases=pending),
        "by type": Choice(types=(EventType.REBOOT,)),
        "by type, few": Choice(types=(EventType.PREEMPT,)),
        "by source": Choice(sources=(Source.USER,)),
        "by scope, busy": Choice(scope_id=busy),
        "by scope, quiet": Choice(scope_id=quiet),
        "by instance, busy": Choice(instance=often),
        "by instance, rare": Choice(instance=seldom),
        "type and phase, rare": rare,
        "busy scope, rare": Choice(scope_id=busy, types=rare.types, phases=rare.phases),
        "busy instance, pending": Choice(scope_id=busy, instance=often, phases=pending),
        "busy instance, rare": Choice(instance=often, phases=(Phase.FAILED,)),
        "no match, fleet": Choice(types=(EventType.TERMINATE,), sources=(Source.PLATFORM,)),
        "no match, scope": Choice(scope_id=ScopeId("nobody"), phases=pending),
        "no match, instance": Choice(scope_id=quiet, instance=often),
    }


def cases(past: Sequence[Past], busy: ScopeId, quiet: ScopeId) -> Iterator[Case]:
    newest = sorted(past, key=lambda each: place_of(each[1]), reverse=True)
    for name, choice in choices(busy, quiet).items():
        fitting = [event for scope_id, event in newest if fits(choice, scope_id, event)]
        places = {"first": 0, "middle": len(fitting) // 2, "last": len(fitting) - PAGE}
        for where, offset in places.items():
            if where != "first" and len(fitting) <= 2 * PAGE:
                continue
            before = _mark(fitting[offset - 1]) if offset else None
            yield Case(name=f"{name}, {where}", choice=choice, offset=offset, before=before)


def _mark(event: Event) -> Mark:
    return Mark(created_ms=event.created_ms, event_id=event.id)


def rows(past: Sequence[Past]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Returns the rows of the tables `events` and `event_instances`."""
    whole, places = [], []
    for scope_id, event in past:
        kind = (event.type.value, event.source.value, event.phase.value)
        whole.append((event.id, scope_id, *kind, event.created_ms, event.ended_ms, encode(event)))
        places += [(name, scope_id, *kind, event.created_ms, event.id) for name in event.resources]
    return whole, places


def fill_sqlite(path: Path, past: Sequence[Past]) -> None:
    connection = connect(path)
    connection.execute("BEGIN")
    tables = {"events": _EVENT, "event_instances": _PLACE}
    for (table, columns), values in zip(tables.items(), rows(past), strict=True):
        marks = ", ".join("?" * len(columns))
        names = ", ".join(columns)
        connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", values)
    connection.execute("COMMIT")
    connection.close()


def fill_postgres(url: str, past: Sequence[Past]) -> None:
    tables = {"events": _EVENT, "event_instances": _PLACE}
    with psycopg.connect(url) as connection:
        for (table, columns), values in zip(tables.items(), rows(past), strict=True):
            text = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
            with connection.cursor() as cursor, cursor.copy(text.encode()) as copy:
                for row in values:
                    copy.write_row(row)


def with_offset(case: Case, is_postgres: bool) -> str:
    """Returns the query with OFFSET; all words are our own, so they need no quoting."""
    choice = case.choice
    names = (
        "json_array_elements_text(body -> 'resources')"
        if is_postgres
        else "value FROM json_each(body, '$.resources')"
    )
    conditions = [
        f"{column} IN ({', '.join(repr(each.value) for each in chosen)})"
        for column, chosen in (
            ("phase", choice.phases), ("type", choice.types), ("source", choice.sources)
        )
        if chosen
    ]  # fmt: skip
    if choice.scope_id is not None:
        conditions.append(f"scope_id = {choice.scope_id!r}")
    if choice.instance is not None:
        conditions.append(f"{choice.instance!r} IN (SELECT {names})")
    return (
        f"SELECT scope_id, body FROM events WHERE {' AND '.join(conditions or ['true'])} "
        f"ORDER BY created_ms DESC, id DESC LIMIT {PAGE} OFFSET {case.offset}"
    )


def timed(times: list[float], began: float) -> None:
    times.append((time.perf_counter() - began) * 1e3)


async def measure(
    store: Store, case: Case, peer: Callable[[str], Any]
) -> tuple[list[float], list[float]]:
    query = with_offset(case, is_postgres=store.is_shared)
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(OURS):
        began = time.perf_counter()
        page = await store.events(case.choice, before=case.before, limit=PAGE)
        timed(ours, began)
        if number % (OURS // PEERS) == 0:
            began = time.perf_counter()
            found = [(scope_id, decode_event(body)) for scope_id, body in peer(query)]
            timed(theirs, began)
            assert page == found, f"{case.name}: the answers differ"
    return ours, theirs


async def compare(name: str, store: Store, past: Sequence[Past], peer: Any) -> None:
    await store.open()
    scope_ids = await store.scope_ids(limit=10_000)
    busy = next(id for id in scope_ids if id.endswith("/web0"))
    quiet = next(id for id in scope_ids if id.endswith("/web7"))
    worst = 0.0
    print(f"{name:<36} {'ours p50':>9} {'p99':>7} {'OFFSET p50':>11} {'p99':>8} {'ratio':>7}")
    for case in cases(past, busy, quiet):
        ours, theirs = await measure(store, case, peer.execute)
        (middle, late), (their_middle, their_late) = quantiles(ours), quantiles(theirs)
        worst = max(worst, late)
        print(f"  {case.name:<34} {middle:>9.2f} {late:>7.2f} {their_middle:>11.2f} "
              f"{their_late:>8.2f} {their_middle / middle:>7.1f}", flush=True)  # fmt: skip
    began = time.perf_counter()
    await store.count_events()
    print(f"  worst p99 {worst:.2f} ms; counting {(time.perf_counter() - began) * 1e3:.1f} ms")
    await store.close()


def quantiles(times: Sequence[float]) -> tuple[float, float]:
    return statistics.median(times), statistics.quantiles(times, n=100, method="inclusive")[98]


async def prepare(store: Store) -> None:
    await store.open()
    await store.create(fleet(), by=operator_actor("benchmark"))
    await store.close()


def on_sqlite(past: Sequence[Past]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.db"
        store = SqliteStore(path, SystemClock())
        asyncio.run(prepare(store))
        fill_sqlite(path, past)
        uvloop.run(compare("SQLite", store, past, connect(path)))


def on_postgres(past: Sequence[Past]) -> None:
    """Measures before PostgreSQL has analysed the new rows, and after."""
    server = PostgresServer()
    server.start()
    try:
        dsn = server.dsn(server.create_database())
        store = PostgresStore(dsn)
        asyncio.run(prepare(store))
        fill_postgres(dsn, past)
        with psycopg.connect(dsn, autocommit=True) as peer:
            peer.adapters.register_loader("json", TextLoader)
            uvloop.run(compare("PostgreSQL, without statistics", store, past, peer))
            peer.execute("VACUUM ANALYZE")
            uvloop.run(compare("PostgreSQL", store, past, peer))
    finally:
        server.remove()


def main() -> None:
    past = events(fleet(), EVENTS)
    on_sqlite(past)
    on_postgres(past)


if __name__ == "__main__":
    main()
