"""Many connections at once on a real server: what no fake and no single connection can show."""

import asyncio
import random
from collections import defaultdict

from fairwarning.core.api_versions import NEWEST
from fairwarning.core.commands import (
    Activate,
    AddInstances,
    Approve,
    Cancel,
    Command,
    Operate,
    ReportPower,
    Schedule,
)
from fairwarning.core.document import render
from fairwarning.core.model import (
    EventType,
    Instance,
    InstanceName,
    OperationKind,
    Power,
    Scope,
    ScopeId,
)
from fairwarning.core.refusals import Refused
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.protocols import START, Entry, Store
from tests.stores.fleet import ME, deciding, declare, new_id, web, whole_journal
from tests.stores.nodes import nodes
from tests.stores.steps import changing

NODES = 4
FLEET = [web(f"w{number}") for number in range(5)]


async def follow(store: Store, entries_max: int) -> list[Entry]:
    """A reader that starts before anybody writes and never looks back."""
    found: list[Entry] = []
    after = START
    while len(found) < entries_max:
        page = await store.journal(after=after, limit=7)
        found += page
        after = page[-1].position if page else after
        await asyncio.sleep(0)
    return found


async def test_a_reader_who_follows_sees_every_entry_once_and_in_order(postgres_dsn: str) -> None:
    rounds, writers = 25, 2
    async with nodes(postgres_dsn, NODES + 1) as (reader, *writing):
        await declare(reader, *FLEET)
        moments = random.Random(1)

        async def write(store: Store, scope_id: ScopeId) -> None:
            for _ in range(rounds):
                await store.transact(scope_id, changing, by=ME)
                if moments.random() < 0.2:
                    await store.note_seen({scope.id: SystemClock().now() for scope in FLEET})

        changes = 2 * len(FLEET) + NODES * writers * len(FLEET) * rounds
        followers = [asyncio.create_task(follow(reader, changes)) for _ in range(2)]
        await asyncio.gather(
            *(write(store, scope.id) for store in writing for scope in FLEET * writers)
        )
        whole = await whole_journal(reader)
        assert len(whole) == changes
        for follower in followers:
            assert await follower == whole
    by_scope: dict[ScopeId, list[int]] = defaultdict(list)
    for entry in whole:
        by_scope[entry.scope_id].append(entry.revision)
    for revisions in by_scope.values():
        assert revisions == list(range(1, 3 + NODES * writers * rounds))


def some_command(moments: random.Random, scope: Scope, number: int) -> Command:
    name = moments.choice(list(scope.roster.instances))
    pending = [event.id for event in scope.unfinished] or [new_id()]
    commands: list[Command] = [
        Activate(),
        AddInstances(instances=(Instance(name=InstanceName(f"{name}-{number}")),)),
        Approve(event_id=moments.choice(pending), by=ME),
        Cancel(event_id=moments.choice(pending)),
        Operate(event_id=new_id(), kind=OperationKind.RESTART, instance=name),
        ReportPower(instance=name, power=moments.choice(list(Power))),
        Schedule(event_id=new_id(), type=EventType.REBOOT, targets=(name,)),
    ]
    return moments.choice(commands)


async def test_readers_never_see_one_number_with_two_contents(postgres_dsn: str) -> None:
    """Promise 6, and the same of whole scopes and their revisions."""
    documents: dict[tuple[ScopeId, int | None, int], bytes] = {}
    scopes: dict[tuple[ScopeId, int], Scope] = {}
    reads = 0

    def check(scope: Scope) -> None:
        activation = scope.id, scope.activated_ms, scope.incarnation
        if scope.is_activated:
            assert documents.setdefault(activation, render(scope, NEWEST)) == render(scope, NEWEST)
        assert scopes.setdefault((scope.id, scope.revision), scope) == scope

    async with nodes(postgres_dsn, NODES) as stores:
        await declare(stores[0], *FLEET[:2])
        is_over = asyncio.Event()

        async def write(store: Store, scope_id: ScopeId, seed: int) -> None:
            moments = random.Random(seed)
            for number in range(40):
                scope = await store.read(scope_id)
                command = some_command(moments, scope, seed * 1_000 + number)
                try:
                    receipt = await store.transact(scope_id, deciding(command), by=ME)
                except Refused:
                    continue
                check(receipt.scope)

        async def read(store: Store) -> None:
            nonlocal reads
            while not is_over.is_set():
                for scope in (*await store.scopes(limit=10), await store.read(FLEET[0].id)):
                    check(scope)
                    reads += 1

        readers = [asyncio.create_task(read(store)) for store in stores for _ in range(2)]
        places = [(store, scope) for store in stores for scope in FLEET[:2]]
        await asyncio.gather(
            *(write(store, scope.id, seed) for seed, (store, scope) in enumerate(places))
        )
        is_over.set()
        await asyncio.gather(*readers)
    assert len(scopes) > 50
    assert len(documents) > 20
    assert reads > 300
