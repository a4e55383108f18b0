"""A fleet file becomes the fleet, on real stores with the real engine."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairwarning.core.commands import Activate, Schedule
from fairwarning.core.instants import MINUTE_MS
from fairwarning.core.model import ENGINE, EventType, Phase, ScopeId
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.transitions import InstanceDeleted
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.service import Engine
from fairwarning.fleet_file.apply import apply, current_scopes
from fairwarning.fleet_file.model import Plan
from fairwarning.fleet_file.plan import exists, plan
from fairwarning.starter_fleet import STARTER_FLEET
from fairwarning.stores.memory import MemoryStore
from fairwarning.stores.sqlite import SqliteStore
from tests.core.builders import E1, names
from tests.engine.harness import ME, Rig
from tests.support.fleet_files import read_toml

TWO = """
vm = [{ name = "a", addresses = ["10.0.0.1"] }, { name = "b", addresses = ["10.0.0.2"] }]
"""
SWAPPED = """
vm = [{ name = "a", addresses = ["10.0.0.2"] }, { name = "b", addresses = ["10.0.0.1"] }]
"""


@pytest.fixture(params=["memory", "sqlite"])
async def rig(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Rig]:
    clock = VirtualClock()
    is_memory = request.param == "memory"
    store = MemoryStore(clock) if is_memory else SqliteStore(tmp_path / "fleet.db", clock)
    await store.open()
    yield Rig(store, clock)
    await store.close()


@pytest.fixture
async def engine(rig: Rig) -> AsyncIterator[Engine]:
    node = await rig.node()
    yield node
    await node.stop()


async def apply_text(rig: Rig, engine: Engine, text: str, *, force: bool = False) -> Plan:
    planned = plan(await current_scopes(rig.store), read_toml(text), prune=True)
    await apply(engine, planned, force=force, by=ME)
    return planned


async def owner(rig: Rig, address: str) -> str | None:
    found = await rig.store.locate(address)
    return None if found is None else found[1]


async def test_a_file_takes_the_place_of_the_starter_fleet(rig: Rig, engine: Engine) -> None:
    await engine.declare(STARTER_FLEET, by=ME)
    planned = await apply_text(rig, engine, TWO)
    assert [each.action for each in planned.changes] == ["remove"] * 4 + ["add"] * 2
    live = [scope for scope in await current_scopes(rig.store) if exists(scope)]
    assert [scope.roster.resource for scope in live] == ["a", "b"]
    assert await apply_text(rig, engine, TWO) == Plan()


async def test_addresses_are_traded(rig: Rig, engine: Engine) -> None:
    await apply_text(rig, engine, TWO)
    await apply_text(rig, engine, SWAPPED)
    assert await owner(rig, "10.0.0.1") == "b"
    assert await owner(rig, "10.0.0.2") == "a"


async def test_a_removed_resource_comes_back_with_its_history(rig: Rig, engine: Engine) -> None:
    await apply_text(rig, engine, TWO)
    await apply_text(rig, engine, "")
    assert await owner(rig, "10.0.0.1") is None
    await apply_text(rig, engine, TWO)
    assert await owner(rig, "10.0.0.1") == "a"
    kinds = await rig.history()
    assert kinds.count("InstanceDeleted") == 2


async def test_a_refused_file_changes_nothing(rig: Rig, engine: Engine) -> None:
    await apply_text(rig, engine, TWO)
    scope_id = ScopeId((await current_scopes(rig.store))[1].id)
    await engine.submit(scope_id, Activate(), by=ENGINE)
    reboot = Schedule(event_id=E1, type=EventType.REBOOT, targets=names("b"))
    await engine.submit(scope_id, reboot, by=ME)
    before = await current_scopes(rig.store)
    with pytest.raises(Refused) as refused:
        await apply_text(rig, engine, "")
    assert refused.value.code is Code.INSTANCE_HAS_EVENT
    assert await current_scopes(rig.store) == before
    planned = await apply_text(rig, engine, "", force=True)
    assert [each.events for each in planned.changes] == [(), (E1,)]
    _, event = await rig.store.find_event(E1)
    assert (event.phase, event.outcome) == (Phase.CANCELLED, "instance b was removed")


async def test_a_plan_that_was_overtaken_undoes_nothing(rig: Rig, engine: Engine) -> None:
    await apply_text(rig, engine, TWO)
    stale = plan(await current_scopes(rig.store), read_toml(SWAPPED), prune=True)
    await apply_text(rig, engine, TWO.replace('"b"', '"c"').replace("10.0.0.1", "10.0.0.9"))
    before = await current_scopes(rig.store)
    with pytest.raises(Refused) as refused:
        await apply(engine, stale, force=False, by=ME)
    assert refused.value.code is Code.ROSTER_CHANGED
    assert await current_scopes(rig.store) == before


POOL = """
[[scale_set]]
name = "pool"
capacity = 3
terminate_notice = "5m"
"""
SMALLER = POOL.replace("capacity = 3", "capacity = 1").replace('terminate_notice = "5m"', "")


async def live(rig: Rig) -> list[str]:
    return [each.name for scope in await current_scopes(rig.store) for each in scope.roster.live]


async def test_a_smaller_file_terminates_whoever_is_watched(rig: Rig, engine: Engine) -> None:
    await apply_text(rig, engine, POOL)
    (scope,) = await current_scopes(rig.store)
    await engine.submit(scope.id, Activate(), by=ENGINE)
    await apply_text(rig, engine, SMALLER)
    assert await live(rig) == ["pool_0", "pool_1", "pool_2"]
    await rig.clock.advance(4 * MINUTE_MS)
    assert len(await live(rig)) == 3
    await rig.clock.advance(2 * MINUTE_MS)
    assert await live(rig) == ["pool_0"]


async def test_whoever_begins_to_watch_after_the_plan_is_warned_too(
    rig: Rig, engine: Engine
) -> None:
    await apply_text(rig, engine, POOL)
    scopes = await current_scopes(rig.store)
    unaware = plan(scopes, read_toml(SMALLER), prune=True, without_notice=True)
    assert not unaware.declares[0].without_notice, "nobody was due a Terminate"
    await engine.submit(scopes[0].id, Activate(), by=ENGINE)
    begun = await apply(engine, unaware, force=False, by=ME)
    assert len(begun) == 2
    assert len(await live(rig)) == 3


async def test_leaving_without_notice_is_in_the_history(rig: Rig, engine: Engine) -> None:
    await apply_text(rig, engine, POOL)
    (scope,) = await current_scopes(rig.store)
    await engine.submit(scope.id, Activate(), by=ENGINE)
    found = plan([*await current_scopes(rig.store)], read_toml(SMALLER), prune=True,
                 without_notice=True)  # fmt: skip
    await apply(engine, found, force=False, by=ME, why="the rack burns")
    assert await live(rig) == ["pool_0"]
    gone = [each for each in await rig.entries() if isinstance(each.transition, InstanceDeleted)]
    assert [each.transition.without_notice for each in gone] == [True, True]  # type: ignore[union-attr]
    assert {(each.by, each.why) for each in gone} == {(ME, "the rack burns")}
