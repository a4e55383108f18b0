"""Callers of the operator API: they schedule, cancel, postpone, approve, operate and scale.

Eight callers use the same scope on purpose. A caller sends an Idempotency-Key with about half of
its requests, and repeats such a request if there was no answer. Sometimes a caller closes the
connection and does not wait for the answer.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from fairwarning.live_check.fleet import BUSY_SCOPE, BY_NAME
from fairwarning.live_check.http import request_bytes, send_and_leave
from fairwarning.live_check.instances import random_member
from fairwarning.live_check.nodes import Node
from fairwarning.live_check.records import Request
from fairwarning.live_check.world import World, new_request, request_parts

SCHEDULERS = 4  # With the cancellers, eight callers use the same scope.
CANCELLERS = 4
OPERATORS = 4
_TRIES_MAX = 3  # By then a killed server is mostly up again.
_PATIENT_TRIES_MAX = 75
"""The tries take over a minute. By then the key of a request that a crash cut off is free."""
_TRY_PAUSE_S = 1.0  # A killed server needs some time to come back.
_UNKNOWN = ("idempotency-in-progress", "store-down", "stopping")


class Caller:
    def __init__(self, world: World, who: str, round_name: str) -> None:
        self._world = world
        self._who = who
        self._round = round_name
        self._chance = world.chance(f"{round_name} {who}")
        self._count = 0
        self._patient: set[asyncio.Task[Request]] = set()

    async def schedule_only(self) -> None:
        """Schedules events in BUSY_SCOPE that start at once, until this task is cancelled."""
        await self._repeat(lambda: self._schedule(BUSY_SCOPE), pause_s=0.12)

    async def schedule_and_cancel(self) -> None:
        """Schedules events in BUSY_SCOPE and cancels them, until this task is cancelled."""
        await self._repeat(self._schedule_and_decide, pause_s=0.12)

    async def operate(self) -> None:
        """Does all that an operator may do, in the other scopes, until this task is cancelled."""
        await self._repeat(self._operate, pause_s=0.25)

    async def _repeat(self, act: Callable[[], Awaitable[object]], pause_s: float) -> None:
        try:
            while True:
                await act()
                await asyncio.sleep(self._chance.uniform(0, 2 * pause_s))
        finally:
            for task in self._patient:
                task.cancel()
            await asyncio.gather(*self._patient, return_exceptions=True)

    async def _schedule_and_decide(self) -> None:
        made = await self._schedule(BUSY_SCOPE)
        if made is None or made.status != 201 or made.answer is None:
            return
        await asyncio.sleep(self._chance.uniform(0, 1))
        await self._decide(str(made.answer["id"]))

    async def _decide(self, id: str) -> None:
        what = self._chance.choices(["cancel", "postpone", "approve"], [7, 2, 2])[0]
        body: dict[str, Any] | None = None
        if what == "postpone":
            body = {"notice": self._chance.choice(["1s", "3s", "20m"])}
        elif what == "cancel" and self._chance.random() < 0.5:
            body = {"reason": "not now"}
        await self._ask(what, f"/events/{id}/{what}", body)

    async def _schedule(self, scope: str) -> Request | None:
        name = random_member(self._world, scope, self._chance)
        if name is None:
            return None
        chance = self._chance
        types = ["Freeze", "Reboot", "Redeploy"]
        if BY_NAME[scope].test:
            types.append("Terminate" if scope == "workers" else "Preempt")
        body: dict[str, Any] = {"type": chance.choice(types), "description": "a live check"}
        if chance.random() < 0.3:
            body |= {"scope": scope, "updateDomain": chance.randrange(3)}
        else:
            body["targets"] = [name]
        if chance.random() < 0.03:
            body["alreadyHappened"] = True
        elif BY_NAME[scope].test:
            body["notice"] = chance.choice(["0s", "0s", "1s", "2s"])
        elif chance.random() < 0.3:
            body["notice"] = chance.choice(["1m", "20m"])
        if chance.random() < 0.1:
            body["id"] = self._event_id(scope)
        made = await self._ask("schedule", "/events", body)
        if made.status == 201 and made.answer is not None:
            self._world.recent[scope].append(str(made.answer["id"]))
        return made

    def _event_id(self, scope: str) -> str:
        """Returns a new id, or sometimes the id of another event, which the server must refuse."""
        recent = self._world.recent[scope]
        if recent and self._chance.random() < 0.3:
            return self._chance.choice(recent)
        return str(uuid.UUID(int=self._chance.getrandbits(128), version=4)).upper()

    async def _operate(self) -> None:
        chance = self._chance
        scope = chance.choice([each for each in BY_NAME if each != BUSY_SCOPE])
        acts = ["schedule", "decide", "restart", "redeploy", "start", "stop"]
        acts += {"workers": ["delete", "delete", "replace", "reimage", "scale", "scale"],
                 "spot": ["evict", "evict", "delete", "scale"]}.get(scope, [])  # fmt: skip
        act = chance.choice(acts)
        if act == "schedule":
            await self._schedule(scope)
        elif act == "decide":
            if self._world.recent[scope]:
                await self._decide(chance.choice(self._world.recent[scope]))
        elif act == "scale":
            capacity = BY_NAME[scope].capacity + chance.randint(-2, 2)
            await self._ask("scale", f"/scopes/{scope}/scale", {"capacity": capacity})
            await self._world.refresh_members(scope, await self._world.any_node(chance))
        elif (name := random_member(self._world, scope, chance)) is not None:
            await self._ask(act, f"/instances/{name}/{act}", None)

    async def _ask(self, what: str, path: str, body: dict[str, Any] | None) -> Request:
        self._count += 1
        label = f"{self._round}-{self._who}-{self._count}"
        key = f"key-{label}" if self._chance.random() < 0.5 else None

        def request(node: Node) -> Request:
            return new_request(node, self._who, label, what, path, body, key)

        if self._chance.random() < 0.05:
            return await self._hang_up(request)
        made = await self._ask_until_known(request, 1 if key is None else _TRIES_MAX)
        if key is not None and not _is_known(made) and self._chance.random() < 0.3:
            again = asyncio.create_task(self._ask_until_known(request, _PATIENT_TRIES_MAX))
            self._patient.add(again)
            again.add_done_callback(self._patient.discard)
        return made

    async def _ask_until_known(self, request: Callable[[Node], Request], tries: int) -> Request:
        while True:
            node = await self._world.any_node(self._chance)
            made = await self._world.ask(node, request(node))
            tries -= 1
            if _is_known(made) or tries <= 0:
                return made
            await asyncio.sleep(_TRY_PAUSE_S)

    async def _hang_up(self, request: Callable[[Node], Request]) -> Request:
        """Sends the request or only a part of it, and does not wait for the answer."""
        node = await self._world.any_node(self._chance)
        made = request(node)
        headers, body = request_parts(made)
        whole = request_bytes(node.control_url, "POST", made.path, headers, body, is_kept=False)
        if self._chance.random() < 0.3:
            whole = whole[: self._chance.randrange(1, len(whole))]
        try:
            await send_and_leave(node.control_url, whole)
        finally:
            self._world.recorder.add(made)
        return made


def _is_known(request: Request) -> bool:
    """Returns whether the answer tells if the request was carried out."""
    if request.status is None or request.answer is None:
        return False
    return request.status < 500 and request.answer.get("code") not in _UNKNOWN


def callers(world: World, round_name: str) -> list[Coroutine[Any, Any, None]]:
    roles = [Caller.schedule_only] * SCHEDULERS
    roles += [Caller.schedule_and_cancel] * CANCELLERS
    roles += [Caller.operate] * OPERATORS
    return [
        role(Caller(world, f"caller-{number}", round_name)) for number, role in enumerate(roles, 1)
    ]
