"""Measures how late timers fire: events due at once in many scopes, on SQLite, in real time."""

import asyncio
import statistics
import tempfile

import uvloop

from benchmarks.engine.workload import ME, new_id, virtual_machines
from fairwarning.boot import make_engine, make_store
from fairwarning.core.commands import Schedule
from fairwarning.core.instants import SECOND_MS, Instant
from fairwarning.core.model import EventType, InstanceName
from fairwarning.core.resources import Place, VirtualMachine
from fairwarning.core.transitions import Started
from fairwarning.engine.clocks import SystemClock

EVENTS = 100
"""How many events there are, ten at each of ten seconds."""


async def measure(url: str) -> list[int]:
    clock = SystemClock()
    store = make_store(url, clock)
    await store.open()
    engine = make_engine(store, clock)
    await engine.start()
    fleet = [
        VirtualMachine(name=each.name, place=Place(test=True)) for each in virtual_machines(EVENTS)
    ]
    scopes = await engine.declare(fleet, by=ME)
    first = clock.now() + 2 * SECOND_MS
    due = {}
    for number, scope in enumerate(scopes):
        command = Schedule(
            event_id=new_id(),
            type=EventType.FREEZE,
            targets=(InstanceName(scope.roster.resource),),
            not_before_ms=Instant(first + number // 10 * SECOND_MS),
            duration_s=0,
        )
        receipt = await engine.submit(scope.id, command, by=ME)
        due[command.event_id] = receipt.scope.events[command.event_id].not_before_ms
    late = []
    async for entry in engine.changes():
        if isinstance(entry.transition, Started):
            late.append(entry.at_ms - due[entry.transition.event_id])
            if len(late) == EVENTS:
                break
    await engine.stop()
    await store.close()
    return late


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        late = uvloop.run(asyncio.wait_for(measure(f"sqlite:///{folder}/timers.db"), 60))
    print(
        f"{EVENTS} timers: median {statistics.median(late):.0f} ms late, "
        f"worst {max(late)} ms, earliest {min(late)} ms"
    )


if __name__ == "__main__":
    main()
