"""Requests under one idempotency key on several nodes, one call to the store at a time."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

from fairwarning.boot import make_control, make_engine
from fairwarning.core.refusals import Refused
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.document_views import Views
from fairwarning.engine.protocols import Store, StoreDown
from fairwarning.operator_api.auth import Caller, Role
from fairwarning.operator_api.context import AzureListener, Control
from fairwarning.operator_api.idempotency import Idempotency
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.record_leases import LEASE_MS, Leases
from fairwarning.operator_api.route import Call, Route
from fairwarning.operator_api.schemas import NoQuery
from fairwarning.stores.memory import MemoryStore
from tests.notifications.rig import SharedStore

EVA = Caller("eva", Role.ADMIN)
WRITES_AND_LOOKS = ("record", "keep", "drop", "transact", "create")
STEPS_MAX = 40


def _node() -> Control:
    """Whatever a request may need beside the store."""
    clock = VirtualClock()
    store = MemoryStore(clock)
    engine = make_engine(store, clock)
    views = Views(store, engine._submit_own)
    return make_control(engine, store, views, clock, AzureListener())


_NODE = _node()


class Dead(BaseException):
    """The node is gone; whatever it still wants to do does not happen."""


class Gate:
    """A node's way to the store: each call waits until the test lets it go on."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: asyncio.Future[None] | None = None
        self.is_dead = False
        self.loses_answer_of = ""
        """Of the next write of this kind of record the answer is lost."""

    @property
    def is_waiting(self) -> bool:
        return self._waiting is not None

    def go_on(self) -> None:
        assert self._waiting is not None
        self._waiting.set_result(None)
        self._waiting = None

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in WRITES_AND_LOOKS:
            return found

        async def call(*args: Any, **named: Any) -> Any:
            if self.is_dead:
                raise Dead
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
            answer = await found(*args, **named)
            if self.loses_answer_of == args[0] and name == "keep":
                self.loses_answer_of = ""
                raise StoreDown("the answer was lost")
            return answer

        return call


class Request:
    """One try, on a node of its own."""

    def __init__(self, store: Store, route: Route, name: str) -> None:
        self.name = name
        self.gate = Gate(store)
        gated = cast(Store, self.gate)
        control = replace(_NODE, store=gated, leases=Leases(gated))
        call: Call[NoQuery, str] = Call(caller=EVA, path={}, query=NoQuery(), body=name, why="")
        self.leases = control.leases
        self._work = Idempotency(control).once(route, call, "key", b"asked")
        self._task: asyncio.Task[str] | None = None

    @property
    def is_over(self) -> bool:
        return self.gate.is_dead or (self._task is not None and self._task.done())

    async def step(self) -> None:
        """Up to its next call to the store, or to its end."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        else:
            self.gate.go_on()
        while not self.gate.is_waiting and not self._task.done():  # noqa: ASYNC110 (no time passes)
            await asyncio.sleep(0)

    async def finish(self) -> str:
        for _ in range(STEPS_MAX):
            if self._task is not None and self._task.done():
                break
            await self.step()
        assert self._task is not None
        return await self._task

    @property
    def answer(self) -> str:
        if self.gate.is_dead or self._task is None or not self._task.done():
            return "no answer"
        return self._task.result()

    async def bury(self) -> None:
        """The end of the test, for one who was killed."""
        self.gate.is_dead = True
        if self._task is None:
            self._work.close()
        else:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> str:
        try:
            return (await self._work).body.decode()
        except Problem as problem:
            return problem.code
        except Refused as refused:
            return refused.code
        except StoreDown:
            return "store-down"


@asynccontextmanager
async def requests(store: Store, route: Route, *names: str) -> AsyncIterator[list[Request]]:
    made = [Request(store, route, name) for name in names]
    try:
        yield made
    finally:
        for each in made:
            await each.bury()


def minute_passes(store: SharedStore) -> None:
    assert isinstance(store._clock, VirtualClock)
    store._clock.step(LEASE_MS + 1)


class Choices:
    """Every way through a run, one run after the other: `pick` says which is next."""

    def __init__(self) -> None:
        self._script: list[int] = []
        self._counts: list[int] = []
        self._place = 0

    def pick(self, options: Sequence[str]) -> str:
        if self._place == len(self._script):
            self._script.append(0)
            self._counts.append(len(options))
        assert self._counts[self._place] == len(options), "the same run went another way"
        chosen = options[self._script[self._place]]
        self._place += 1
        return chosen

    def next_run(self) -> bool:
        """False when every way was gone."""
        self._place = 0
        while self._script and self._script[-1] + 1 == self._counts[-1]:
            self._script.pop()
            self._counts.pop()
        if not self._script:
            return False
        self._script[-1] += 1
        return True
