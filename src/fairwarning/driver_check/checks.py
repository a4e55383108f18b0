"""Each check of a driver returns a remark, which may be empty, or raises CheckFailed."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from fairwarning.driver_check.messages import Gap, When
from fairwarning.driver_check.nodes import CallFailed, Node, NodeDied
from fairwarning.driver_check.results import CheckFailed, LeftOut
from fairwarning.driver_check.world import World, at_attempt
from fairwarning.engine.protocols import Found, Order

ROUNDS = 3
"""How often two nodes are given the same impact. Once might miss a race between them."""


class Check(NamedTuple):
    title: str
    run: Callable[[World], Awaitable[str]]


async def once(world: World) -> str:
    before = await world.counts()
    async with world.node() as first, world.node() as second:
        order = world.order()
        if await first.find(order) is Found.DONE and world.target.acts:
            raise CheckFailed("find said 'done' of a key that was never ordered")
        await _do(first, order)
        await world.expect_done(second, order, 1)
        await _do(first, order)
        await _do(second, order)
    await world.expect(before, 1, "after the same attempt was ordered three times")
    return ""


async def crash(world: World) -> str:
    async with world.node() as survivor:
        gaps = await _gaps_of_an_undisturbed_run(world)
        places = [Gap(number=n, when=w) for n in range(1, gaps + 1) for w in When]
        tried = _spread(places, world.gaps_max)
        for gap in tried:
            await _crash_in(world, gap, survivor)
    return f"{len(tried)} of {len(places)} places"


async def _gaps_of_an_undisturbed_run(world: World) -> int:
    async with world.node() as node:
        return await _undisturbed(world, node)


async def _undisturbed(world: World, node: Node) -> int:
    """Has one impact carried out, and waits until it is counted, so that no later count includes
    it.
    """
    before = await world.counts()
    gaps = await _do(node, world.order())
    await world.expect(before, 1, "after one undisturbed order")
    return gaps


async def _crash_in(world: World, gap: Gap, survivor: Node) -> None:
    place = f"when the node was killed in gap {gap.number} ({gap.when.value})"
    before = await world.counts()
    async with world.node() as victim:
        order = world.order()
        try:
            await victim.do(order, dies_at=gap)
        except NodeDied:
            pass
        except CallFailed as failure:
            raise CheckFailed(f"do failed: {failure}") from None
    try:
        await world.settle(survivor, order, 2)
        await world.expect_done(survivor, order, 2)
    except CheckFailed as failed:
        raise CheckFailed(f"{place}, {failed}") from None
    await world.expect(before, 1, place)


async def two_nodes(world: World) -> str:
    async with world.node() as first, world.node() as second:
        for _ in range(ROUNDS):
            before, order = await world.counts(), world.order()
            late = asyncio.create_task(_try(first, order))
            await world.settle(second, order, 2)
            await late
            await world.expect(before, 1, "when two nodes had attempts 1 and 2 at the same time")
            await world.expect_done(first, order, 9)
    return ""


async def lower_attempt(world: World) -> str:
    before = await world.counts()
    async with world.node() as first, world.node() as second:
        order = world.order()
        await second.find(at_attempt(order, 2))
        is_refused = await _try(first, order) is not None
        if world.target.acts and not is_refused:
            raise CheckFailed(
                "attempt 1 was carried out after another node had asked about attempt 2"
            )
        await world.expect(before, 0, "after a lower attempt")
        await _do(second, at_attempt(order, 2))
        await _try(first, order)
    await world.expect(before, 1, "after attempt 2 and a late attempt 1")
    return "" if world.target.acts else "the driver acts on nothing, so it need not refuse"


async def wrong_handle(world: World) -> str:
    if not world.target.acts:
        return "the driver acts on nothing, so every handle is good"
    order = world.order_for_nobody()
    async with world.node() as node:
        if await _try(node, order) is None:
            raise CheckFailed("an impact on an instance that does not exist was reported as done")
        try:
            found = await node.find(at_attempt(order, 2))
        except CallFailed:
            return ""
    if found is Found.DONE:
        raise CheckFailed("find said 'done' of an instance that does not exist")
    return ""


async def away(world: World) -> str:
    take_away, bring_back = world.target.take_away, world.target.bring_back
    if not world.target.acts:
        return "the driver acts on nothing that could be away"
    if take_away is None or bring_back is None:
        raise LeftOut("say how the hypervisor is taken away and brought back: --away, --back")
    async with world.node() as node:
        # The driver may have connections by now, which must be made again later.
        await _undisturbed(world, node)
        before, order = await world.counts(), world.order()
        await take_away()
        try:
            if await _try(node, order) is None:
                raise CheckFailed("do returned while the hypervisor was away")
            try:
                found = await node.find(at_attempt(order, 2))
            except CallFailed:
                found = Found.UNKNOWN
            if found is Found.DONE:
                raise CheckFailed("find said 'done' while the hypervisor was away")
        finally:
            await bring_back()
        await world.settle(node, order, 3)
        await world.expect_done(node, order, 8)
    await world.expect(before, 1, "after the hypervisor was away")
    return ""


async def cancellation(world: World) -> str:
    before = await world.counts()
    async with world.node() as first, world.node() as second:
        order = world.order()
        id = first.begin(order)
        await first.has_begun(id)
        await first.cancel(id)
        await world.settle(second, order, 2)
        await world.expect_done(first, order, 8)
    for handle, after in (await world.counts()).items():
        if after == before[handle]:
            raise CheckFailed(f"{handle} had no impact, although an attempt was reported as done")
    return ""


CHECKS: dict[str, Check] = {
    "once": Check("an attempt that is ordered twice acts once", once),
    "crash": Check("a node that is killed in any gap loses and repeats nothing", crash),
    "two-nodes": Check("two nodes at the same time act once", two_nodes),
    "lower-attempt": Check("a lower attempt than one that was seen is refused", lower_attempt),
    "wrong-handle": Check("an instance that does not exist is a failure", wrong_handle),
    "away": Check("a hypervisor that is away is a failure, and it works when it is back", away),
    "cancellation": Check("a cancelled call ends, and the next attempt goes on", cancellation),
}


async def _do(node: Node, order: Order) -> int:
    try:
        return await node.do(order)
    except CallFailed as failure:
        raise CheckFailed(f"do of attempt {order.attempt} failed: {failure}") from None


async def _try(node: Node, order: Order) -> str | None:
    """Returns the driver's reason if it failed, or None if it reported the impact as done."""
    try:
        await node.do(order)
    except CallFailed as failure:
        return str(failure)
    return None


def _spread(gaps: Sequence[Gap], most: int) -> list[Gap]:
    if len(gaps) <= most:
        return list(gaps)
    step = (len(gaps) - 1) / max(1, most - 1)
    return [gaps[round(number * step)] for number in range(most)]
