"""Who gets the next turn, and who is refused."""

import asyncio

import pytest

from fairwarning.operator_api.fair_queue import CallerQueueFull, FairQueue, QueueFull


class Crowd:
    """Callers that each hold their turn until they are told to go."""

    def __init__(self, queue: FairQueue) -> None:
        self._queue = queue
        self.has_turn: list[str] = []
        self._gates: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def ask(self, name: str) -> None:
        """The caller is the first letter."""
        self._gates[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._hold(name))
        await settle()

    async def _hold(self, name: str) -> None:
        async with self._queue.turn(name[0]):
            self.has_turn.append(name)
            await self._gates[name].wait()
        self.has_turn.remove(name)

    async def go(self, name: str) -> None:
        self._gates[name].set()
        await self._tasks[name]
        await settle()

    async def give_up(self, name: str) -> None:
        self._tasks[name].cancel()
        await asyncio.wait([self._tasks[name]])
        await settle()

    async def end(self) -> None:
        for gate in self._gates.values():
            gate.set()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_whoever_asks_for_little_goes_before_those_who_ask_for_much() -> None:
    crowd = Crowd(FairQueue(at_once=1, caller_at_once=1, caller_max=9))
    for name in ("a1", "a2", "a3", "b1", "b2", "c1"):
        await crowd.ask(name)
    order = []
    while crowd.has_turn:
        order += crowd.has_turn
        await crowd.go(crowd.has_turn[0])
    assert order == ["a1", "a2", "b1", "c1", "a3", "b2"]


async def test_a_place_given_to_somebody_who_has_just_left_goes_to_the_next() -> None:
    queue = FairQueue(at_once=1, caller_at_once=1, caller_max=9)

    async def pass_through(caller: str) -> None:
        async with queue.turn(caller):
            pass

    async with queue.turn("a"):
        leaving = asyncio.create_task(pass_through("b"))
        await settle()
    # The place is the leaving caller's now, but its task has not run yet.
    leaving.cancel()
    await asyncio.wait([leaving])
    coming = asyncio.create_task(pass_through("c"))
    await settle()
    is_served = coming.done()
    coming.cancel()
    assert is_served


async def test_one_caller_leaves_a_place_for_others() -> None:
    crowd = Crowd(FairQueue(at_once=2, caller_at_once=1, caller_max=9))
    for name in ("a1", "a2", "b1", "c1"):
        await crowd.ask(name)
    assert crowd.has_turn == ["a1", "b1"]
    await crowd.go("b1")
    assert crowd.has_turn == ["a1", "c1"]
    await crowd.go("c1")
    assert crowd.has_turn == ["a1"]
    await crowd.go("a1")
    assert crowd.has_turn == ["a2"]
    await crowd.end()


async def test_a_caller_who_has_too_many_is_refused_and_others_are_not() -> None:
    queue = FairQueue(at_once=1, caller_at_once=1, caller_max=2, all_max=3)
    crowd = Crowd(queue)
    await crowd.ask("a1")
    await crowd.ask("a2")
    with pytest.raises(CallerQueueFull):
        async with queue.turn("a"):
            pass
    await crowd.ask("b1")
    with pytest.raises(QueueFull):
        async with queue.turn("c"):
            pass
    await crowd.go("a1")
    await crowd.ask("c1")
    await crowd.end()
    assert crowd.has_turn == []


async def test_whoever_gives_up_takes_no_turn_and_blocks_none() -> None:
    crowd = Crowd(FairQueue(at_once=1, caller_at_once=1, caller_max=2))
    for name in ("a1", "b1", "b2", "c1"):
        await crowd.ask(name)
    await crowd.give_up("b1")
    await crowd.give_up("a1")
    assert crowd.has_turn[1:] == ["b2"], "a1 still has its name here, for it did not end well"
    await crowd.give_up("b2")
    assert crowd.has_turn[2:] == ["c1"]
    await crowd.end()


async def test_a_turn_that_ends_while_the_next_caller_gives_up_goes_to_the_one_after() -> None:
    crowd = Crowd(FairQueue(at_once=1, caller_at_once=1, caller_max=2))
    for name in ("a1", "b1", "c1"):
        await crowd.ask(name)
    crowd._gates["a1"].set()
    crowd._tasks["b1"].cancel()
    await crowd.go("a1")
    assert crowd.has_turn == ["c1"]
    await crowd.end()
    assert crowd.has_turn == []
