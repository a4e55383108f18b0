"""Every call stops twice and waits for the world: before it is carried out, and before it answers.

The world decides which stopped call goes on, fails, or waits for ever because its node is dead. So
the nodes' calls can happen in any order, and a node can crash between any two steps.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from typing import Any, Generic, TypeVar

from fairwarning.engine.protocols import ScopeBusy, StoreDown

T = TypeVar("T")
BUSY = "busy"
"""The entry in `failing_next` for calls that may fail because another node has locked the scope."""
WRITES = ("transact", "keep", "drop")
"""The names of the calls that change the store, except notes of polls."""


class Decision(Enum):
    GO_ON = "go on"
    FAIL = "fail"
    BUSY = "busy"
    SETTLED = "settled"
    """The call has been carried out together with others, so it already has its outcome."""


@dataclass(slots=True, eq=False)
class Outcome(Generic[T]):
    """Either the result of a call or the error that it raised."""

    result: T | None = None
    error: BaseException | None = None


@dataclass(slots=True, eq=False)
class Call:
    """A call that waits until the world decides whether it goes on or fails."""

    node: str
    name: str
    detail: str
    work: Callable[[], Awaitable[Any]]
    is_done: bool = False
    may_be_busy: bool = False
    outcome: Outcome[Any] | None = None
    number: int = field(default_factory=count().__next__)
    decision: asyncio.Future[Decision] = field(default_factory=asyncio.Future)
    is_held: bool = False
    """Whether the answer is held back until an action releases this call."""

    def __str__(self) -> str:
        detail = f" {self.detail}" if self.detail else ""
        return f"{self.node} {self.name}{detail} {'answers' if self.is_done else 'asks'}"

    @property
    def place(self) -> tuple[str, str, str, bool, int]:
        """Returns the sort key that gives calls the same order in every run of a seed."""
        return self.node, self.name, self.detail, self.is_done, self.number


class Calls:
    """The calls of all nodes that wait for a decision of the world or are being carried out."""

    def __init__(self) -> None:
        self.waiting: list[Call] = []
        self.dead: set[str] = set()
        """The names of nodes whose calls never answer."""
        self.committing: str | None = None
        """The node whose call is carried out now. A signal at this time is from its commit."""
        self.failing_next: set[tuple[str, bool]] = set()
        """Methods whose next call fails: after it was carried out if True, else before."""
        self.on_outcome: Callable[[object], None] = lambda _: None
        """A function that is called with each result, before the caller gets the result."""
        self.on_failure: Callable[[Call, Decision], None] = lambda _, __: None
        self._hanging: list[object] = []
        self._running = 0
        self._returned: asyncio.Future[None] | None = None

    def kill(self, node: str) -> None:
        """Makes sure that no call of this node ever answers."""
        self.dead.add(node)
        # They are kept, because the garbage collector would end tasks that must hang for ever.
        self._hanging += [call for call in self.waiting if call.node == node]
        self.waiting[:] = [call for call in self.waiting if call.node != node]

    def has_any(self, node: str) -> bool:
        return any(call.node == node for call in self.waiting)

    def release(self, call: Call, decision: Decision) -> None:
        fail_next = (BUSY if call.may_be_busy else call.name, call.is_done)
        if fail_next in self.failing_next and decision is Decision.GO_ON:
            self.failing_next.remove(fail_next)
            decision = Decision.BUSY if call.may_be_busy else Decision.FAIL
        if decision in (Decision.FAIL, Decision.BUSY):
            self.on_failure(call, decision)
        self.waiting.remove(call)
        if not call.decision.done():
            call.decision.set_result(decision)

    async def run(self, call: Call) -> Outcome[Any]:
        """Carries out the call, and returns its result or its error."""
        self.committing = call.node
        try:
            return Outcome(result=await self.counted(call.work()))
        except Exception as error:
            return Outcome(error=error)
        finally:
            if not self._running:
                self.committing = None

    async def counted(self, work: Awaitable[T]) -> T:
        """Awaits `work` and counts it as running, so that the world waits for a real database."""
        self._running += 1
        try:
            return await work
        finally:
            self._running -= 1
            if self._returned is not None and not self._returned.done():
                self._returned.set_result(None)

    async def wait_for_running(self) -> bool:
        """Waits for a running call to return, and returns True. Returns False if none runs."""
        if not self._running:
            return False
        self._returned = asyncio.get_running_loop().create_future()
        await self._returned
        return True

    async def intercept(
        self,
        node: str,
        name: str,
        work: Callable[[], Awaitable[T]],
        *,
        detail: str = "",
        may_be_busy: bool = False,
    ) -> T:
        """Carries `work` out between the two stops of a call, and returns its result. Raises
        StoreDown or ScopeBusy if the world says so, and what `work` raises.
        """
        call = Call(node, name, detail, work, may_be_busy=may_be_busy)
        match await self._decision(call):
            case Decision.FAIL:
                raise StoreDown("simulated outage")
            case Decision.BUSY:
                raise ScopeBusy
            case Decision.GO_ON:
                outcome = await self.run(call)
            case Decision.SETTLED:
                assert call.outcome is not None
                outcome = call.outcome
        if outcome.error is None:
            self.on_outcome(outcome.result)
        call = Call(node, name, detail, work, is_done=True, outcome=outcome)
        if await self._decision(call) is Decision.FAIL:
            raise StoreDown("simulated outage, after the fact")
        if outcome.error is not None:
            raise outcome.error
        result: T = outcome.result  # type: ignore[assignment]
        return result

    async def _decision(self, call: Call) -> Decision:
        if call.node in self.dead:
            self._hanging.append(call)
        else:
            self.waiting.append(call)
        try:
            return await call.decision
        except asyncio.CancelledError:
            if call in self.waiting:
                self.waiting.remove(call)
            raise
