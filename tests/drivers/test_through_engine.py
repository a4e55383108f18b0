"""From an approval to a program that ran: the scope's settings reach its driver."""

import asyncio
from pathlib import Path

from msgspec.structs import replace

from fairwarning.core.commands import Approve, Schedule
from fairwarning.core.model import EventType, NodeId, Phase
from fairwarning.core.resources import expand
from fairwarning.drivers.command import CommandDriver
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.service import Engine
from fairwarning.stores.memory import MemoryStore
from tests.core.builders import E1, names
from tests.drivers.orders import program
from tests.engine.harness import ME, TEST_WEB, ids


async def test_a_flaky_program_is_asked_what_became_of_it_and_runs_again(tmp_path: Path) -> None:
    settings = program(
        tmp_path,
        "before = notes.read_text() if notes.exists() else ''\n"
        "notes.write_text(before + action + os.environ['FAIRWARNING_ATTEMPT'] + ' ')\n"
        "if action == 'find': print('failed')\n"
        "elif not before: sys.exit('not now')\n",
    )
    clock = VirtualClock()
    store = MemoryStore(clock)
    (scope,) = expand(TEST_WEB)
    roster = replace(scope.roster, driver="command", driver_settings=settings)
    await store.create([replace(scope, roster=roster)], by=ME)
    drivers = {"command": CommandDriver(clock)}
    engine = Engine(store=store, clock=clock, drivers=drivers, node=NodeId("n"), ids=ids())
    await engine.start()
    schedule = Schedule(event_id=E1, type=EventType.REBOOT, targets=names("web-0"), notice_ms=0)
    await engine.submit(scope.id, schedule, by=ME)
    await engine.submit(scope.id, Approve(event_id=E1, by=ME), by=ME)
    await clock.advance(60_000)
    _, event = await store.find_event(E1)
    await engine.stop()
    assert event.phase is Phase.COMPLETED
    told = await asyncio.to_thread((tmp_path / "notes").read_text)
    assert told.split() == ["do1", "find2", "find2", "do2"]
