"""Whoever holds something is alone with it, on whichever node."""

import asyncio
from typing import Any, cast

import pytest

from fairwarning.control.holding import KIND, held
from fairwarning.control.problems import Problem
from fairwarning.engine.ports import Record, Store
from tests.control.rig import ME, Rig


class BothLook:
    """A store of which two readers know the same before either of them writes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._both = asyncio.Barrier(2)

    async def record(self, kind: str, key: str) -> Record | None:
        found = await self._store.record(kind, key)
        await self._both.wait()
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def test_of_two_who_find_it_free_one_gets_it(rig: Rig) -> None:
    store = cast(Store, BothLook(rig.node.store))
    refused = asyncio.Event()

    async def work() -> str:
        try:
            async with held(store, "set", by=ME):
                await refused.wait()
                return "worked"
        except Problem as problem:
            refused.set()
            return f"{problem.status} {problem.code}"

    assert sorted(await asyncio.gather(work(), work())) == ["409 resource-busy", "worked"]


async def test_it_is_free_again_whatever_happened_meanwhile(rig: Rig) -> None:
    async def break_off() -> None:
        async with held(rig.node.store, "set", by=ME):
            assert await rig.node.store.record(KIND, "set") is not None
            raise ValueError("broke")

    with pytest.raises(ValueError, match="broke"):
        await break_off()
    assert await rig.node.store.record(KIND, "set") is None


async def test_whoever_was_given_up_takes_nothing_from_the_next(rig: Rig) -> None:
    store = rig.node.store
    async with held(store, "set", by=ME):
        other = await store.keep(KIND, "set", "{}", by=ME)
    assert await store.record(KIND, "set") == other
