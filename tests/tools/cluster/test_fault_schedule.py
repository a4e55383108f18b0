"""Faults are chosen by a seed, each once before one comes again, and recorded."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairwarning.live_check.records import Approval, Record, Records, now
from tools.cluster import fault_schedule
from tools.cluster.databases import Database
from tools.cluster.fault import Cluster, Fault
from tools.cluster.fault_schedule import FaultSchedule

CLUSTER = cast(Cluster[Database], SimpleNamespace(database=SimpleNamespace(write=lambda: None)))
DONE: list[str] = []


class First(Fault[Database]):
    name = "first"

    async def do(self) -> str:
        DONE.append(self.name)
        return f"to node-{self.chance.randrange(1_000)}"

    async def undo(self) -> None:
        DONE.append(f"{self.name} undone")


class Second(First):
    name = "second"


class Third(First):
    name = "third"


class World:
    """It ends the load after some faults, and accepts an approval after each."""

    def __init__(self, faults: int) -> None:
        self.over = asyncio.Event()
        self.records = Records()
        self.recorder = self
        self._faults = faults

    def add(self, record: Record) -> None:
        self.records.add(record)
        at = now()
        approval = Approval(
            instance="", node="", version="", events=[], is_foreign=False, sent=at, answered=at,
            status=200,
        )  # fmt: skip
        self.records.add(approval)
        if len(self.records.faults) == self._faults:
            self.over.set()


async def play(seed: str, faults: int) -> Records:
    DONE.clear()
    world: Any = World(faults)
    schedule = FaultSchedule([First, Second, Third], CLUSTER, seed, lambda _: None)
    await schedule(world, world.over)
    records: Records = world.records
    return records


@pytest.fixture(autouse=True)
def no_calm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fault_schedule, "_CALM_S", (0.0, 0.0))


async def test_each_fault_comes_once_before_one_comes_again() -> None:
    names = [each.name for each in (await play("1", 9)).faults]
    for number in (0, 3, 6):
        assert sorted(names[number : number + 3]) == ["first", "second", "third"]


async def test_the_same_seed_makes_the_same_choices() -> None:
    def choices(records: Records) -> list[tuple[str, str]]:
        return [(each.name, each.detail) for each in records.faults]

    first = choices(await play("1", 6))
    assert choices(await play("1", 6)) == first
    assert choices(await play("2", 6)) != first


async def test_a_fault_is_undone_before_the_next_one() -> None:
    names = [each.name for each in (await play("1", 4)).faults]
    assert [step for name in names for step in (name, f"{name} undone")] == DONE


async def test_a_fault_is_recorded_with_the_first_write_after_it() -> None:
    for each in (await play("1", 3)).faults:
        assert each.began.mono_s <= each.ended.mono_s <= each.writable.mono_s
