"""Starts the nodes of a check, calls the driver in them, and kills them."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from msgspec.structs import replace

from fairwarning.core.model import NodeId
from fairwarning.driver_check.messages import Call, Gap, Outcome, Reply, Request
from fairwarning.driver_check.node_process import READY
from fairwarning.driver_check.results import CheckFailed
from fairwarning.engine.protocols import Found, Order


class CallFailed(Exception):
    """The driver said that it failed, as it may."""


class NodeDied(Exception):
    """The process of the node ended during the call."""


class Node:
    """One process with the driver in it."""

    def __init__(self, process: asyncio.subprocess.Process, name: str, patience_s: float) -> None:
        self._process = process
        self._name = name
        self._patience_s = patience_s
        self._replies: dict[int, asyncio.Queue[Reply | None]] = {}
        self._reading = asyncio.create_task(self._read())
        self._last = 0

    async def find(self, order: Order) -> Found:
        reply = await self._over(
            self.begin(order, is_find=True), f"find of attempt {order.attempt}"
        )
        assert reply.found is not None
        return reply.found

    async def do(self, order: Order, dies_at: Gap | None = None) -> int:
        """Carries out the order, and returns the number of gaps. Raises CallFailed or NodeDied."""
        id = self.begin(order, dies_at=dies_at)
        return (await self._over(id, f"do of attempt {order.attempt}")).gaps

    def begin(self, order: Order, *, is_find: bool = False, dies_at: Gap | None = None) -> int:
        self._last += 1
        self._replies[self._last] = asyncio.Queue()
        order = replace(order, node=NodeId(self._name))
        call = Call(id=self._last, order=order, is_find=is_find, dies_at=dies_at)
        self._send(Request(call=call))
        return self._last

    async def has_begun(self, id: int) -> None:
        """Waits until the driver waits for something, or has ended."""
        queue = self._replies[id]
        first = await self._next(queue, "the begin of do")
        if first is None or first.outcome is not Outcome.WAITS:
            queue.put_nowait(first)

    async def cancel(self, id: int) -> None:
        """Cancels the call, and returns when it has ended. Raises CheckFailed if it does not."""
        self._send(Request(cancel=id))
        queue, what = self._replies[id], "the end of a cancelled do"
        reply = await self._next(queue, what)
        while reply is not None and reply.outcome is Outcome.WAITS:
            reply = await self._next(queue, what)

    async def kill(self) -> None:
        # A process that ended by itself is reaped elsewhere; `kill` would reap it a second time.
        if self._process.returncode is None and not self._reading.done():
            self._process.kill()
        await self._process.wait()
        await self._reading

    def _send(self, request: Request) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(request) + b"\n")

    async def _over(self, id: int, what: str) -> Reply:
        while (reply := await self._next(self._replies[id], what)) is not None:
            match reply.outcome:
                case Outcome.RETURNED:
                    return reply
                case Outcome.FAILED:
                    if not reply.reason.strip():
                        raise CheckFailed(f"{what} failed without a reason")
                    raise CallFailed(reply.reason)
                case Outcome.BROKE | Outcome.CANCELLED:
                    raise CheckFailed(
                        f"{what} ended with {reply.reason or reply.outcome}; a driver that cannot "
                        "do something must raise DriverFailed with a reason"
                    )
                case Outcome.WAITS:
                    pass
        raise NodeDied(what)

    async def _next(self, queue: asyncio.Queue[Reply | None], what: str) -> Reply | None:
        try:
            async with asyncio.timeout(self._patience_s):
                return await queue.get()
        except TimeoutError:
            raise CheckFailed(f"{what} did not come within {self._patience_s:g} s") from None

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            reply = msgspec.json.decode(line, type=Reply)
            self._replies[reply.id].put_nowait(reply)
        for queue in self._replies.values():
            queue.put_nowait(None)


@asynccontextmanager
async def node(driver: str, name: str, patience_s: float) -> AsyncIterator[Node]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "fairwarning.driver_check.node_process",
        driver,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    if await process.stdout.readline() != READY:
        raise CheckFailed(f"the node ended with code {await process.wait()} before it was ready")
    made = Node(process, name, patience_s)
    try:
        yield made
    finally:
        await made.kill()
