"""Reads of scopes: one of a scope at a time, and none that was asked for is lost."""

import asyncio

import pytest

from fairwarning.core.model import ScopeId
from fairwarning.engine import rereads
from fairwarning.engine.protocols import StoreDown
from fairwarning.engine.rereads import READS_AT_ONCE_MAX, Rereads
from tests.support.patience import HANG_S

A = ScopeId("a")


class Reader:
    """Whose reads begin and end when the test says so."""

    def __init__(self) -> None:
        self.begun: list[ScopeId] = []
        self.running = 0
        self.most = 0
        self.error: Exception | None = None
        self.gate = asyncio.Semaphore(0)
        self.rereads = Rereads(self.read)

    async def read(self, scope_id: ScopeId) -> None:
        self.begun.append(scope_id)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.gate.acquire()
        finally:
            self.running -= 1
        if self.error is not None:
            raise self.error

    def let_go(self, number: int = 1_000) -> None:
        for _ in range(number):
            self.gate.release()

    async def turns(self, number: int = 5) -> None:
        for _ in range(number):
            await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rereads, "PAUSE_S", 0.001)


async def test_many_signals_while_it_is_read_cost_one_more_read() -> None:
    reader = Reader()
    for _ in range(10):
        reader.rereads.read_soon(A)
        await reader.turns()
    assert reader.begun == [A]
    reader.let_go()
    await reader.turns()
    assert (reader.begun, reader.most) == ([A, A], 1)
    assert not reader.rereads._running


async def test_who_asks_now_waits_for_a_read_that_began_afterwards() -> None:
    reader = Reader()
    reader.rereads.read_soon(A)
    await reader.turns()
    asked = [asyncio.create_task(reader.rereads.read_now(A)) for _ in range(3)]
    await reader.turns()
    reader.let_go(1)
    await reader.turns()
    assert reader.begun == [A, A]
    assert not any(each.done() for each in asked), "the first read may have been too early"
    reader.let_go()
    await asyncio.gather(*asked)
    assert reader.begun == [A, A]


@pytest.mark.parametrize("error", [StoreDown("down"), RuntimeError("a bug")])
async def test_an_outage_is_told_to_who_waits_and_the_news_is_not_lost(error: Exception) -> None:
    reader = Reader()
    reader.error = error
    reader.let_go()
    with pytest.raises(type(error)):
        await reader.rereads.read_now(A)
    with pytest.raises(type(error)):
        await reader.rereads.read_now(A)
    assert A in reader.rereads._running, "it is tried again, though nobody waits"
    reader.error = None
    async with asyncio.timeout(HANG_S):
        await reader.rereads.read_now(A)
        while reader.rereads._running:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_many_are_read_some_at_a_time() -> None:
    reader = Reader()
    ids = [ScopeId(str(number)) for number in range(3 * READS_AT_ONCE_MAX + 1)]
    reading = asyncio.create_task(reader.rereads.read_all(ids))
    await reader.turns(20)
    assert reader.running == READS_AT_ONCE_MAX
    reader.let_go()
    await reading
    assert reader.begun == ids
    assert reader.most == READS_AT_ONCE_MAX


async def test_who_has_left_is_not_told() -> None:
    reader = Reader()
    asked = asyncio.create_task(reader.rereads.read_now(A))
    await reader.turns()
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    reader.let_go()
    await reader.turns()
    assert not reader.rereads._running


async def test_when_it_closes_nobody_waits_on() -> None:
    reader = Reader()
    first = asyncio.create_task(reader.rereads.read_now(A))
    await reader.turns()
    second = asyncio.create_task(reader.rereads.read_now(A))
    await reader.turns()
    await reader.rereads.close()
    found = await asyncio.gather(first, second, return_exceptions=True)
    assert {type(each) for each in found} == {asyncio.CancelledError}
    assert not reader.rereads._running


async def test_who_waits_when_it_closes_is_not_left_waiting() -> None:
    """Not even for a read that has not had its first turn."""
    reader = Reader()
    waiting = asyncio.create_task(reader.rereads.read_now(A))
    closing = asyncio.create_task(reader.rereads.close())
    done, _ = await asyncio.wait({waiting, closing}, timeout=HANG_S)
    assert done == {waiting, closing}


async def test_nothing_is_read_once_it_is_closed() -> None:
    reader = Reader()
    await reader.rereads.close()
    reader.rereads.read_soon(A)
    with pytest.raises(StoreDown):
        await reader.rereads.read_now(A)
    await reader.turns()
    assert (reader.begun, reader.rereads._running) == ([], {})


async def test_news_that_came_during_a_read_is_as_old_as_the_read_behind_it() -> None:
    reader = Reader()
    reader.rereads.read_soon(A)
    await reader.turns()
    reader.rereads.read_soon(A)
    between_s = asyncio.get_running_loop().time()
    assert reader.rereads.oldest_s <= between_s
    reader.let_go(1)
    await reader.turns()
    assert reader.rereads.oldest_s >= between_s
    reader.let_go()
    await reader.turns()
    assert reader.rereads.oldest_s == float("inf")
