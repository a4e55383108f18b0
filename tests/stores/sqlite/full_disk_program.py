"""A process whose disk fails it and then works again: see test_outages.py."""

import asyncio
import resource
import sys
from pathlib import Path

from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.protocols import Signal, StoreDown
from fairwarning.stores.sqlite import SqliteStore
from fairwarning.stores.sqlite.writer import InlineCommits
from tests.stores.fleet import ME, declare, web, whole_journal
from tests.stores.steps import changing


def limit_file_size(size: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))


async def run(path: Path, inline_commits: InlineCommits) -> None:
    store = SqliteStore(path, SystemClock(), inline_commits)
    await store.open()
    id = await declare(store, web())
    told: list[Signal] = []
    store.listen(told.append)
    limit_file_size(path.with_name(f"{path.name}-wal").stat().st_size)
    try:
        await store.transact(id, changing, by=ME)
    except StoreDown as outage:
        print(outage)
    assert (await store.read(id)).revision == 2
    assert len(await whole_journal(store)) == 2
    told_before = len(told)
    limit_file_size(resource.RLIM_INFINITY)
    assert (await store.transact(id, changing, by=ME)).scope.revision == 3
    print(f"told before {told_before}, told after {len(told)}")
    await store.close()
    await store.open()
    assert (await store.read(id)).revision == 3
    await store.close()


commits = InlineCommits(after=0) if "loop" in sys.argv else InlineCommits()
asyncio.run(run(Path(sys.argv[1]), commits))
