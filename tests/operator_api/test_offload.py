"""Slow computations of one caller do not keep those of others waiting."""

import asyncio
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fairwarning.core.model import Scope
from fairwarning.core.refusals import Code, Refused
from fairwarning.operator_api import (
    fleet_plans,
    offload,
)
from fairwarning.operator_api.auth import Role, Tokens
from fairwarning.operator_api.fair_queue import FairQueue
from fairwarning.operator_api.offload import BATCH
from tests.operator_api.rig import ME, Rig
from tests.support.patience import HANG_S

TOML = {"Content-Type": "application/toml"}


async def test_plans_of_one_caller_have_a_limit_and_others_go_before_them(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, begun = threading.Event(), threading.Event()
    real = fleet_plans._made_here

    def made(wish: fleet_plans.Wish, current: Sequence[Scope]) -> list[bytes]:
        begun.set()
        assert gate.wait(HANG_S)
        return real(wish, current)

    monkeypatch.setattr(fleet_plans, "_made_here", made)
    token, secret = await Tokens(rig.node.store, rig.node.clock).create(
        "ada", Role.VIEWER, None, by=ME, why=""
    )
    other = {**TOML, "Authorization": f"Bearer {secret}"}
    reads = Counter[str]()
    read = rig.node.store.scopes

    async def scopes(**more: Any) -> list[Scope]:
        reads[offload.caller_key.get()] += 1
        return await read(**more)

    monkeypatch.setattr(rig.node.store, "scopes", scopes)
    waits = asyncio.Event()
    begin = FairQueue._begin

    async def noted(self: FairQueue, caller: str) -> None:
        asyncio.get_running_loop().call_soon(waits.set if caller == token.id else int)
        await begin(self, caller)

    monkeypatch.setattr(FairQueue, "_begin", noted)
    done: list[str] = []

    async def plan(who: str, headers: dict[str, str]) -> int:
        status = (await rig.api.post("/fleet/plan", content=b"#", headers=headers)).status_code
        done.append(who)
        return status

    # The 32 that are let in wait, and only those beyond them are answered before the gate opens.
    many = [asyncio.create_task(plan("many", TOML)) for _ in range(offload.CALLER_MAX + 3)]
    for refusal in itertools.islice(asyncio.as_completed(many, timeout=HANG_S), 3):
        assert await refusal == 429
    assert reads.total() <= 2, "the fleet is read for whoever has his turn, to its end"
    refused = await rig.api.post("/fleet/plan", content=b"#", headers=TOML)
    assert Rig.check(refused, 429)["code"] == "too-many-plans"
    assert refused.headers["retry-after"] == "1"
    assert await asyncio.to_thread(begun.wait, HANG_S)
    one = asyncio.create_task(plan("one", other))
    async with asyncio.timeout(HANG_S):
        await waits.wait()
    gate.set()
    statuses = await asyncio.gather(*many, one)
    assert sorted(statuses) == [200] * 33 + [429] * 3
    assert done.index("one") <= 3 + 3


def counted(scopes: dict[int, int], names: list[str], one: str, few: tuple[int, ...]) -> Any:
    """What the other process got, as the steps of a result."""
    return (*scopes.items(), *names, one, *few)


def refused(*_: object) -> Any:
    raise Refused(Code.SCOPE_FULL, "it is full")


async def through_frames(work: Callable[..., Any], *given: Any) -> Any:
    """As through the pipe of the other process, without one."""
    frames = [frame async for frame in offload._sent(work, given)]
    return await offload._understood([*offload.call_job(iter(frames))])


@pytest.mark.parametrize("size", [0, 1, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH, 2 * BATCH + 1])
async def test_what_is_sent_in_pieces_arrives_whole(size: int) -> None:
    given = ({n: -n for n in range(size)}, [str(n) for n in range(size)], "one", (1,) * size)
    assert await through_frames(counted, *given) == counted(*given)


async def test_a_refusal_comes_back_as_one() -> None:
    with pytest.raises(Refused, match="it is full") as caught:
        await through_frames(refused)
    assert caught.value.code is Code.SCOPE_FULL
