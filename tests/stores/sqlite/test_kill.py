"""Promise 5: what was acknowledged survives kill -9, and nothing is ever half there."""

import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from fairwarning.core.lifecycle import fold
from fairwarning.core.model import EventId, ScopeId
from fairwarning.core.transitions import Noted, Unknown
from fairwarning.engine.clocks import SystemClock
from fairwarning.stores.sqlite import SqliteStore
from tests.stores.fleet import ME, web, whole_journal

FLEET = [web(f"w{number}") for number in range(8)]
ROUNDS = 6
ACKNOWLEDGED_MAX = 400


def run_until_killed(path: Path, generation: int, acknowledged: int) -> list[str]:
    """What the process said before it died, in the middle of whatever it was at."""
    command = [
        sys.executable,
        "-m",
        "tests.stores.sqlite.acknowledging_program",
        str(path),
        str(generation),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(acknowledged)]
        assert all(lines), "it ended by itself"
        process.kill()
        return lines + process.stdout.readlines()


async def check_is_whole(store: SqliteStore, path: Path) -> None:
    """The scope, its journal and the table of events tell one story."""
    for declared in FLEET:
        scope = await store.read(declared.id)
        entries = await whole_journal(store, declared.id)
        happened = (entry.transition for entry in entries[1:])
        told = fold(declared, (each for each in happened if not isinstance(each, Noted | Unknown)))
        # The scope forgets what is over; the table of events does not.
        for event in told.events.values():
            assert await store.find_event(event.id) == (scope.id, event)
            assert event.is_finished or event.id in scope.events
        for event in scope.events.values():
            assert event == told.events[event.id]
        assert told.incarnation == scope.incarnation
        assert [entry.revision for entry in entries][-1] == scope.revision
        assert sorted({entry.revision for entry in entries}) == list(range(1, scope.revision + 1))
    with closing(sqlite3.connect(path)) as onlooker:
        assert onlooker.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert onlooker.execute("PRAGMA foreign_key_check").fetchall() == []
        named = onlooker.execute("SELECT instance, event_id, phase FROM event_instances")
        affected = onlooker.execute(
            "SELECT value, events.id, phase FROM events JOIN json_each(body, '$.resources')"
        )
        assert sorted(named) == sorted(affected)


async def test_nothing_acknowledged_is_lost_and_nothing_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path, SystemClock())
    await store.open()
    await store.create(FLEET, by=ME)
    await store.close()
    moments = random.Random(5)
    for generation in range(ROUNDS):
        lines = run_until_killed(path, generation, moments.randint(1, ACKNOWLEDGED_MAX))
        await store.open()
        await check_is_whole(store, path)
        for line in lines:
            scope_id, revision, event_id = line.split()
            assert (await store.read(ScopeId(scope_id))).revision >= int(revision)
            assert (await store.find_event(EventId(event_id)))[0] == scope_id
        await store.close()
