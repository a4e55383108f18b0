"""The same random life in all three stores: what one answers and keeps, all do."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from operator import methodcaller
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fairwarning.core.commands import (
    Activate,
    AddInstances,
    Approve,
    Cancel,
    ChangeModel,
    ChangePolicy,
    Command,
    Operate,
    OperateAll,
    Postpone,
    Release,
    RenewLease,
    ReportDone,
    ReportFailure,
    ReportPower,
    Schedule,
    Tick,
    UpgradeInstances,
)
from fairwarning.core.instants import DAY_MS, MINUTE_MS, Instant
from fairwarning.core.limits import Timing
from fairwarning.core.model import (
    EventId,
    EventType,
    Instance,
    InstanceName,
    OperationKind,
    Phase,
    Policy,
    Power,
    Priority,
    Scope,
    ScopeId,
    instance_actor,
)
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.resources import (
    AvailabilitySet,
    Member,
    Place,
    Resource,
    ScaleSet,
    expand,
)
from fairwarning.core.transitions import Noted
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Choice, Entry, Position, RecordChanged, Store
from fairwarning.stores.memory import MemoryStore
from fairwarning.stores.postgres import PostgresStore
from fairwarning.stores.sqlite import SqliteStore
from tests.core.builders import T0, event_id
from tests.stores.fleet import ME, NODE, deciding, whole_journal

IDS = [event_id(number) for number in range(1, 6)]
ADDRESSES = [f"10.0.0.{number}" for number in range(1, 6)]
RESOURCES: list[Resource] = [
    AvailabilitySet(
        name="web",
        update_domains=2,
        members=tuple(Member(name=f"web-{number}") for number in range(3)),
        place=Place(test=True),
    ),
    ScaleSet(
        name="workers",
        capacity=2,
        addresses=(ADDRESSES[0], ADDRESSES[1]),
        terminate_notice_ms=5 * MINUTE_MS,
    ),
    ScaleSet(name="spot", capacity=2, addresses=(ADDRESSES[1],), priority=Priority.SPOT),
]
SCOPES = [scope for resource in RESOURCES for scope in expand(resource)]
NEW = InstanceName("new")
KEYS = ["a", "b"]
HASTY = Timing(idle_ms=20 * MINUTE_MS, idle_grace_ms=0, retention_ms=10 * MINUTE_MS, attempts_max=2)

CHOICES = [
    Choice(),
    *(Choice(phases=(phase,)) for phase in Phase),
    *(Choice(scope_id=scope.id) for scope in SCOPES),
    *(Choice(instance=name) for scope in SCOPES for name in (*scope.roster.instances, NEW)),
]

ids = st.sampled_from(IDS)
attempts = st.integers(1, 2)
new_instances = st.builds(
    Instance,
    name=st.sampled_from([NEW, InstanceName("newer")]),
    addresses=st.lists(st.sampled_from(ADDRESSES), max_size=2).map(tuple),
)


def commands_of(scope: Scope) -> st.SearchStrategy[Command]:
    """Each with a fair chance of meaning something."""
    names = st.sampled_from([*scope.roster.instances, NEW])
    actors = st.one_of(st.just(ME), names.map(instance_actor))
    instants = st.integers(1, 4).map(lambda n: Instant(T0 + n * 20 * MINUTE_MS))
    return st.one_of(
        st.just(Activate()),
        st.just(Tick()),
        st.builds(
            Schedule,
            event_id=ids,
            type=st.sampled_from(EventType),
            targets=names.map(lambda name: (name,)),
            already_happened=st.booleans(),
        ),
        st.builds(Operate, event_id=ids, kind=st.sampled_from(OperationKind), instance=names),
        st.builds(
            OperateAll,
            kind=st.sampled_from(OperationKind),
            targets=st.lists(st.tuples(ids, names), max_size=2).map(tuple),
        ),
        st.builds(Approve, event_id=ids, by=actors),
        st.builds(Cancel, event_id=ids),
        st.builds(Postpone, event_id=ids, new_event_id=ids, not_before_ms=instants),
        st.builds(ReportDone, event_id=ids),
        st.builds(ReportFailure, event_id=ids, attempt=attempts, reason=st.just("broken")),
        st.builds(RenewLease, event_id=ids, attempt=attempts, node=st.just(NODE)),
        st.builds(Release, event_id=ids, attempt=attempts, node=st.just(NODE)),
        st.builds(AddInstances, instances=st.lists(new_instances, max_size=2).map(tuple)),
        st.builds(
            ChangeModel,
            terminate_notice_ms=st.sampled_from([None, 6 * MINUTE_MS]),
            reimage_notice_ms=st.sampled_from([None, 15 * MINUTE_MS]),
            profile=st.sampled_from(["", "other"]),
        ),
        st.builds(UpgradeInstances, names=st.lists(names, max_size=2).map(tuple)),
        st.builds(ChangePolicy, policy=st.builds(Policy, approve_user_reboot=st.booleans())),
        st.builds(ReportPower, instance=names, power=st.sampled_from(Power)),
    )


expectations = st.sampled_from([None, None, 0, 1, 2])
notes = st.sampled_from([None, Noted(subject="token:t", action="changed")])
submissions = st.sampled_from(SCOPES).flatmap(
    lambda scope: st.tuples(st.just("submit"), st.just(scope), commands_of(scope))
)
lives = st.lists(
    st.one_of(
        submissions,
        submissions,
        submissions,
        st.tuples(st.just("create"), st.sampled_from(SCOPES).map(lambda scope: [scope])),
        st.tuples(st.just("advance"), st.sampled_from([1, MINUTE_MS, 10 * MINUTE_MS, DAY_MS])),
        st.tuples(st.just("to deadline"), st.integers(-1, 1)),
        st.tuples(st.just("note"), st.sampled_from(SCOPES), st.integers(-1, 1)),
        st.tuples(st.just("keep"), st.sampled_from(KEYS), expectations, notes),
        st.tuples(st.just("drop"), st.sampled_from(KEYS), expectations, notes),
    ),
    min_size=50,
    max_size=80,
)


class Trio:
    """One clock, three stores; each question is put to all, and the answers must agree."""

    def __init__(self, postgres: PostgresStore, clock: VirtualClock, path: Path) -> None:
        self.clock = clock
        self.stores: list[Store] = [MemoryStore(clock), SqliteStore(path, clock), postgres]

    async def ask(self, question: Callable[[Store], Any]) -> Any:
        answers = [await _answer(question(store)) for store in self.stores]
        assert answers[1:] == answers[:1] * 2
        return answers[0]

    async def do(self, what: tuple[Any, ...]) -> Any:
        match what:
            case ("submit", scope, command):
                step = deciding(command, timing=HASTY, node=NODE)
                return await self.ask(lambda store: store.transact(scope.id, step, by=ME, why="w"))
            case ("create", scopes):
                return await self.ask(lambda store: store.create(scopes, by=ME))
            case ("note", scope, by_ms):
                seen = Instant(self.clock.now() + by_ms)
                return await self.ask(lambda store: store.note_seen({scope.id: seen}))
            case ("keep", key, expected, note):
                body = f'"{self.clock.now()}"'
                return await self.ask(
                    lambda store: store.keep(
                        "token", key, body, expected=expected, note=note, by=ME
                    )
                )
            case ("drop", key, expected, note):
                return await self.ask(
                    lambda store: store.drop("token", key, expected=expected, note=note, by=ME)
                )
            case ("advance", by_ms):
                self.clock.step(by_ms)
            case ("to deadline", by_ms):
                due = await self.ask(lambda store: store.due(1))
                if due.next_deadline_ms is not None:
                    self.clock.step(max(due.next_deadline_ms + by_ms - self.clock.now(), 0))
            case _:
                raise AssertionError(what)
        return None

    async def compare(self) -> list[Entry]:
        await self.ask(lambda store: store.scopes(limit=100))
        for scope in SCOPES:
            await self.ask(partial(_contents, scope_id=scope.id))
        for id in IDS:
            await self.ask(methodcaller("find_event", id))
            await self.ask(partial(_looked_back, event_id=id))
        for address in ADDRESSES:
            await self.ask(methodcaller("locate", address))
        for choice in CHOICES:
            await self.ask(methodcaller("events", choice, limit=100))
        await self.ask(methodcaller("count_events"))
        await self.ask(methodcaller("records", "token", limit=100))
        await self.ask(_looked_back)
        entries: list[Entry] = await self.ask(_contents)
        return entries


async def _answer(asked: Any) -> Any:
    try:
        return await asked
    except Refused as refused:
        # If there are several reasons, each store may name its own.
        return refused.code
    except RecordChanged as changed:
        return str(changed)


async def _contents(store: Store, scope_id: ScopeId | None = None) -> list[Entry]:
    """Positions are a store's own; all else is not."""
    return [_anywhere(entry) for entry in await whole_journal(store, scope_id)]


async def _looked_back(store: Store, event_id: EventId | None = None) -> list[Entry]:
    return [_anywhere(entry) for entry in await store.history(event_id=event_id, limit=1_000)]


def _anywhere(entry: Entry) -> Entry:
    return replace(entry, position=Position(""))


class Bench:
    """An event loop and a PostgreSQL for all the lives of a test."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._runner = asyncio.Runner()
        self._clock = VirtualClock(T0)
        self._postgres = PostgresStore(dsn, self._clock)
        self._runner.run(self._postgres.open())
        self.kinds: set[str] = set()
        self.refusals: set[Code] = set()

    def live(self, life: list[tuple[Any, ...]]) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute(
                "TRUNCATE scopes, rosters, events, event_instances, addresses, journal, records"
            )
        self._clock.step(T0 - self._clock.now())
        with TemporaryDirectory() as folder:
            trio = Trio(self._postgres, self._clock, Path(folder) / "store.db")
            self._runner.run(self._live(trio, life))

    async def _live(self, trio: Trio, life: list[tuple[Any, ...]]) -> None:
        await trio.stores[1].open()
        try:
            awake = [("submit", scope, Activate()) for scope in SCOPES[:2]]
            for what in [("create", SCOPES[:2]), *awake, *life]:
                answer = await trio.do(what)
                await trio.ask(lambda store: store.due(2))
                if isinstance(answer, Code):
                    self.refusals.add(answer)
            for entry in await trio.compare():
                self.kinds.add(type(entry.transition).__name__)
        finally:
            await trio.stores[1].close()

    def close(self) -> None:
        self._runner.run(self._postgres.close())
        self._runner.close()


@pytest.fixture
def bench(postgres_dsn: str) -> Iterator[Bench]:
    bench = Bench(postgres_dsn)
    yield bench
    bench.close()


def test_all_stores_live_the_same_life(bench: Bench) -> None:
    @settings(
        max_examples=25,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
    )
    @given(lives)
    def lives_alike(life: list[tuple[Any, ...]]) -> None:
        bench.live(life)

    lives_alike()
    assert len(bench.kinds) >= 10, "chance has left out too much"
    assert len(bench.refusals) >= 8, "chance has left out too much"


def scope_named(name: str) -> Scope:
    return next(scope for scope in SCOPES if scope.roster.resource == name)


def test_a_life_with_everything_in_it(bench: Bench) -> None:
    """What chance may leave out: taken ids and addresses, deletion, eviction, forgetting."""
    web, workers, spot = scope_named("web"), scope_named("workers"), scope_named("spot")
    restart = Operate(event_id=IDS[0], kind=OperationKind.RESTART, instance=InstanceName("web-0"))
    delete = Operate(event_id=IDS[1], kind=OperationKind.DELETE, instance=InstanceName("workers_1"))
    heir = Instance(name=NEW, addresses=(ADDRESSES[1],))
    bench.live(
        [
            ("create", [spot]),
            ("submit", web, Activate()),
            ("submit", workers, Activate()),
            ("submit", web, restart),
            ("submit", workers, replace(delete, event_id=IDS[0])),
            ("submit", workers, delete),
            ("submit", web, AddInstances(instances=(heir,))),
            ("to deadline", 0),
            ("submit", workers, Tick()),
            ("submit", workers, ReportDone(event_id=IDS[1])),
            ("create", [spot]),
            ("submit", web, AddInstances(instances=(heir,))),
            ("submit", web, Approve(event_id=IDS[0], by=instance_actor(InstanceName("web-0")))),
            ("submit", web, ReportFailure(event_id=IDS[0], attempt=1, reason="broken")),
            ("to deadline", 0),
            ("submit", web, Tick()),
            ("submit", web, ReportFailure(event_id=IDS[0], attempt=2, reason="broken")),
            ("advance", DAY_MS),
            ("note", web, 0),
            ("submit", web, Tick()),
            ("submit", workers, Tick()),
            ("submit", web, restart),
        ]
    )
    assert {"Failed", "InstanceDeleted", "Deactivated", "AttemptFailed"} <= bench.kinds
    assert {Code.ADDRESS_IN_USE, Code.EVENT_ID_USED} <= bench.refusals
