"""The store of clusters: locks, the server's clock, and signals between nodes."""

import asyncio
import gc
from itertools import pairwise

import psycopg
import pytest
from msgspec.structs import replace

from fairwarning.core.commands import AddInstances, Tick
from fairwarning.core.decide import Change
from fairwarning.core.instants import Instant
from fairwarning.core.model import Instance, InstanceName, Scope, ScopeId
from fairwarning.core.refusals import Code, Refused
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Moment, ScopeBusy, Signal, StoreDown
from fairwarning.stores.codec import encode
from fairwarning.stores.postgres import PostgresStore
from fairwarning.stores.postgres.signals import PAYLOAD_BYTES_MAX, payloads_of
from fairwarning.stores.postgres.store import ShieldedCalls
from tests.stores.fleet import ME, deciding, declare, vm, web
from tests.stores.nodes import nodes, stranger, wait_for
from tests.stores.steps import changing


@pytest.mark.parametrize("how", ["enter", "lock_row"])
async def test_a_busy_scope_is_skipped_or_waited_for(
    postgres: PostgresStore, postgres_dsn: str, how: str
) -> None:
    id = await declare(postgres, web(), web("free"))
    async with stranger(postgres_dsn) as other:
        await getattr(other, how)(id)
        with pytest.raises(ScopeBusy, match="web"):
            await postgres.transact(id, changing, by=ME, skip_busy=True)
        receipt = await postgres.transact(web("free").id, changing, by=ME, skip_busy=True)
        assert receipt.scope.revision == 3
        waiting = asyncio.create_task(postgres.transact(id, changing, by=ME))
        await other.wait_until_blocked()
        assert (await postgres.read(id)).revision == 2
        await other.leave()
        assert (await waiting).scope.revision == 3
        assert (await postgres.transact(id, changing, by=ME, skip_busy=True)).scope.revision == 4


async def test_what_is_read_is_no_older_than_the_lock(
    postgres: PostgresStore, postgres_dsn: str
) -> None:
    """A join with the locked row would show the roster as it was before the wait."""
    id = await declare(postgres, web())
    scope = await postgres.read(id)
    grown = replace(
        scope.roster, instances={**scope.roster.instances, **web("new").roster.instances}
    )
    seen: list[Scope] = []

    def step(before: Scope, moment: Moment) -> Change:
        seen.append(before)
        return changing(before, moment)

    async with stranger(postgres_dsn) as other:
        await other.lock_row(id)
        waiting = asyncio.create_task(postgres.transact(id, step, by=ME))
        await other.wait_until_blocked()
        await other.execute("UPDATE scopes SET revision = 7 WHERE id = %s", id)
        body = encode(grown)
        await other.execute("UPDATE rosters SET body = %s WHERE scope_id = %s", body, id)
        await other.leave()
        await waiting
    assert [(each.revision, each.roster) for each in seen] == [(7, grown)]


async def test_the_time_is_the_servers_and_read_after_the_wait(postgres_dsn: str) -> None:
    async with nodes(postgres_dsn, 1) as (store,), stranger(postgres_dsn) as other:
        id = await declare(store, web())
        first = await other.now_ms()
        await other.enter(id)
        waiting = asyncio.create_task(store.transact(id, changing, by=ME))
        await other.wait_until_blocked()
        released = await other.now_ms()
        await other.leave()
        receipt = await waiting
        assert first <= released <= receipt.at_ms <= await other.now_ms()
        assert first <= (await store.due(1)).now_ms <= await other.now_ms()


async def test_an_unchanged_deadline_costs_no_commit(
    postgres: PostgresStore, postgres_dsn: str
) -> None:
    id = await declare(postgres, web())
    await postgres.transact(id, deciding(Tick()), by=ME)
    async with stranger(postgres_dsn) as other:
        row = await other.execute("SELECT xmin, ctid FROM scopes WHERE id = %s", id)
        await postgres.transact(id, deciding(Tick()), by=ME)
        assert await other.execute("SELECT xmin, ctid FROM scopes WHERE id = %s", id) == row
        await postgres.transact(id, changing, by=ME)
        assert await other.execute("SELECT xmin, ctid FROM scopes WHERE id = %s", id) != row


async def test_a_roster_is_rewritten_only_when_it_changes(
    postgres: PostgresStore, postgres_dsn: str
) -> None:
    id = await declare(postgres, web())

    def idle(scope: Scope, moment: Moment) -> Change:
        change = changing(scope, moment)
        return replace(change, scope=replace(change.scope, roster=scope.roster))

    async with stranger(postgres_dsn) as other:
        query = "SELECT xmin, ctid FROM rosters WHERE scope_id = %s"
        row = await other.execute(query, id)
        await postgres.transact(id, idle, by=ME)
        assert await other.execute(query, id) == row
        await postgres.transact(id, changing, by=ME)
        assert await other.execute(query, id) != row


async def test_every_node_hears_every_commit_once(postgres_dsn: str) -> None:
    async with nodes(postgres_dsn, 3) as stores:
        told: list[list[Signal]] = [[] for _ in stores]
        for store, heard in zip(stores, told, strict=True):
            store.listen(heard.append)
        await stores[0].create([web()], by=ME)
        own = replace(told[0][0], scope=None)
        await wait_for(lambda: told[1] and told[2])
        # What a node says comes after what it heard, so an echo would be here by now.
        await stores[1].create([vm("fence")], by=ME)
        await wait_for(lambda: len(told[0]) == 2 and len(told[2]) == 2)
        for heard in told:
            assert [replace(each, scope=None) for each in heard] == [
                own,
                Signal(scope_id=vm("fence").id, next_deadline_ms=None),
            ]
        assert [each.scope is not None for each in told[0]] == [True, False]
        assert [each.scope is not None for each in told[1]] == [False, True]


async def test_many_signals_fit_into_few_messages(postgres_dsn: str) -> None:
    fleet = [vm(f"{number}-{'x' * 50}") for number in range(500)]
    async with nodes(postgres_dsn, 2) as (sender, receiver):
        told: set[ScopeId] = set()
        receiver.listen(lambda signal: told.add(signal.scope_id))
        await sender.create(fleet, by=ME)
        await wait_for(lambda: told == {scope.id for scope in fleet})


def test_payloads_are_as_long_as_they_may_be() -> None:
    lines = [(ScopeId(f"é{number}"), None) for number in range(2_000)]
    payloads = list(payloads_of("token", lines))
    sizes = [len(payload.encode()) for payload in payloads]
    longest = len(encode(lines[-1])) + 1
    assert all(size <= PAYLOAD_BYTES_MAX for size in sizes)
    assert all(size + longest > PAYLOAD_BYTES_MAX for size, _ in pairwise(sizes))
    assert list(payloads_of("token", [])) == []


async def test_other_nodes_hear_the_newest_deadline_whoever_came_back_first(
    postgres_dsn: str,
) -> None:
    """Two commits of one scope; the caller of the older one wakes up last, or first."""
    async with nodes(postgres_dsn, 2) as (sender, receiver):
        told: list[Signal] = []
        receiver.listen(told.append)
        newer = Signal(scope_id=web().id, next_deadline_ms=Instant(5), scope=revised(4))
        older = Signal(scope_id=web().id, next_deadline_ms=None, scope=revised(3))
        for order in ([newer, older], [older, newer]):
            told.clear()
            for signal in order:
                sender._parts.signals.publish([signal])
            await wait_for(lambda: told)
            assert [each.next_deadline_ms for each in told] == [5]


def revised(revision: int) -> Scope:
    return replace(web(), revision=revision)


async def test_what_waits_is_still_sent_when_a_node_closes(postgres_dsn: str) -> None:
    async with nodes(postgres_dsn, 2) as (sender, receiver):
        told: list[Signal] = []
        receiver.listen(told.append)
        await sender.create([web()], by=ME)
        await sender.close()
        await wait_for(lambda: told)


async def test_a_node_hears_from_the_moment_it_is_open(postgres_dsn: str) -> None:
    store, told = PostgresStore(postgres_dsn), list[Signal]()
    store.listen(told.append)
    await store.open()
    # Without a turn for the tasks of the store.
    with psycopg.connect(postgres_dsn, autocommit=True) as other:
        other.execute("SELECT pg_notify('fairwarning', '[\"other\", [[\"s\", 5]]]')")
    await wait_for(lambda: told)
    assert told == [Signal(scope_id=ScopeId("s"), next_deadline_ms=Instant(5))]
    await store.close()


async def test_what_could_not_be_sent_is_sent_when_it_can_be(postgres_dsn: str) -> None:
    async with nodes(postgres_dsn, 2) as (sender, receiver), stranger(postgres_dsn) as other:
        told: list[Signal] = []
        receiver.listen(told.append)
        await sender.create([web()], by=ME)
        await wait_for(lambda: told)
        told.clear()
        # All but those who listen, so that the next signal finds its connection broken.
        await other.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = "
            "current_database() AND pid <> pg_backend_pid() AND query NOT LIKE 'LISTEN%'"
        )
        await sender.transact(web().id, changing, by=ME)
        await wait_for(lambda: told)
        assert [each.scope_id for each in told] == [web().id]


async def test_what_is_done_while_a_node_closes_is_told_to_the_others(postgres_dsn: str) -> None:
    async with nodes(postgres_dsn, 2) as (sender, receiver), stranger(postgres_dsn) as other:
        id = await declare(receiver, web())
        told: list[Signal] = []
        receiver.listen(told.append)
        await other.enter(id)
        caller = asyncio.create_task(sender.transact(id, changing, by=ME))
        await other.wait_until_blocked()
        closing = asyncio.create_task(sender.close())
        await asyncio.sleep(0)
        await other.leave()
        await caller
        await closing
        await wait_for(lambda: told)


async def test_a_node_has_no_more_connections_than_it_may(postgres_dsn: str) -> None:
    """Two, and two for signals; the others wait for one."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'fairwarning'"
    async with (
        nodes(postgres_dsn, 1, connections_max=2) as (store,),
        stranger(postgres_dsn) as other,
    ):
        id = await declare(store, web())
        await other.enter(id)
        callers = [asyncio.create_task(store.transact(id, changing, by=ME)) for _ in range(6)]
        await other.wait_until_blocked(2)
        for _ in range(4):
            # Whoever could connect has begun to before this one, and is there as soon.
            async with stranger(postgres_dsn):
                pass
        ((open_now,),) = await other.execute(f"{query} AND datname = current_database()")
        await other.leave()
        await asyncio.gather(*callers)
        assert open_now <= 4


async def test_the_settings_of_the_database_weaken_no_promise(postgres_dsn: str) -> None:
    """An answer means durable, and a wait for a lock ends in the newest row."""
    async with stranger(postgres_dsn) as other:
        ((name,),) = await other.execute("SELECT current_database()")
        for setting in (
            "synchronous_commit = off",
            "default_transaction_isolation = 'repeatable read'",
            "default_transaction_read_only = on",
        ):
            await other.execute(f'ALTER DATABASE "{name}" SET {setting}')
    async with nodes(postgres_dsn, 1) as (store,):
        async with store._parts.database.connection() as connection:
            cursor = await connection.execute("SHOW synchronous_commit")
            assert await cursor.fetchall() == [("on",)]
        id = await declare(store, web())
        await asyncio.gather(*(store.transact(id, changing, by=ME) for _ in range(5)))
        assert (await store.read(id)).revision == 7


def test_a_store_with_a_clock_of_its_own_is_not_shared(clock: VirtualClock) -> None:
    assert PostgresStore("").is_shared
    assert not PostgresStore("", clock).is_shared


async def test_strange_words_on_the_channel_are_left_out(postgres_dsn: str) -> None:
    async with nodes(postgres_dsn, 2) as (sender, receiver), stranger(postgres_dsn) as other:
        told: list[Signal] = []
        receiver.listen(told.append)
        for payload in ("", "nonsense", '["token"]', '["token", [["id", "never"]]]'):
            await other.execute("SELECT pg_notify('fairwarning', %s)", payload)
        await sender.create([web()], by=ME)
        await wait_for(lambda: told)
        assert [each.scope_id for each in told] == [web().id]


async def test_nodes_that_want_the_same_addresses_do_not_block_each_other(
    postgres_dsn: str,
) -> None:
    """Both wait behind a stranger; taken in two orders, each would then wait for the other."""
    forth = ("10.0.0.1", "10.0.0.2", "10.0.0.3")
    async with nodes(postgres_dsn, 2) as (one, two), stranger(postgres_dsn) as other:
        await one.create([vm("owner")], by=ME)
        await other.execute("BEGIN")
        query = "INSERT INTO addresses (address, scope_id, instance) VALUES (%s, %s, 'owner')"
        await other.execute(query, forth[1], vm("owner").id)
        callers = [
            asyncio.create_task(one.create([vm("one", *forth)], by=ME)),
            asyncio.create_task(two.create([vm("two", *reversed(forth))], by=ME)),
        ]
        await other.wait_until_blocked(2)
        await other.execute("ROLLBACK")
        results = await asyncio.gather(*callers, return_exceptions=True)
    codes = {each.code if isinstance(each, Refused) else each for each in results}
    assert codes == {None, Code.ADDRESS_IN_USE}


async def test_nodes_that_note_the_same_scopes_do_not_block_each_other(postgres_dsn: str) -> None:
    forth = [vm(name).id for name in ("a", "b", "c")]
    async with nodes(postgres_dsn, 2) as (one, two), stranger(postgres_dsn) as other:
        await one.create([vm("a"), vm("b"), vm("c")], by=ME)
        await other.lock_row(forth[1])
        callers = [
            asyncio.create_task(one.note_seen({id: Instant(1) for id in forth})),
            asyncio.create_task(two.note_seen({id: Instant(2) for id in reversed(forth)})),
        ]
        await other.wait_until_blocked(2)
        await other.leave()
        await asyncio.gather(*callers)
        assert {scope.last_seen_ms for scope in await one.scopes(limit=10)} == {2}


async def test_a_refusal_names_the_address_that_is_taken(postgres: PostgresStore) -> None:
    id = await declare(postgres, web(), vm("other", "10.0.0.5"))
    wanted = Instance(name=InstanceName("new"), addresses=("10.0.0.1", "10.0.0.5"))
    with pytest.raises(Refused, match=r"address 10\.0\.0\.5 already belongs"):
        await postgres.transact(id, deciding(AddInstances(instances=(wanted,))), by=ME)


async def test_a_caller_who_goes_away_does_not_take_the_change_along(
    postgres: PostgresStore, postgres_dsn: str
) -> None:
    id = await declare(postgres, web())
    told: list[Signal] = []
    postgres.listen(told.append)
    async with stranger(postgres_dsn) as other:
        await other.enter(id)
        caller = asyncio.create_task(postgres.transact(id, changing, by=ME))
        await other.wait_until_blocked()
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        await other.leave()
    await wait_for(lambda: told)
    assert (await postgres.read(id)).revision == 3


async def test_closing_finishes_what_was_asked(postgres: PostgresStore, postgres_dsn: str) -> None:
    id = await declare(postgres, web())
    callers = [asyncio.create_task(postgres.transact(id, changing, by=ME)) for _ in range(30)]
    await asyncio.sleep(0)
    await postgres.close()
    assert len(await asyncio.gather(*callers)) == 30
    with pytest.raises(StoreDown, match="not open"):
        await postgres.read(id)
    await postgres.open()
    assert (await postgres.read(id)).revision == 32


async def test_a_call_that_fails_after_its_caller_has_gone_is_no_error_of_the_program() -> None:
    complaints: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    gate = asyncio.Event()

    async def fail() -> None:
        await gate.wait()
        raise StoreDown("the test wants it")

    calls = ShieldedCalls()
    caller = asyncio.create_task(calls.run(fail()))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)
    gate.set()
    while calls._running:  # noqa: ASYNC110
        await asyncio.sleep(0)
    del caller
    gc.collect()
    assert not complaints
