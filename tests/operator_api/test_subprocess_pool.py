"""Processes for large bodies have limits, and a killed one is begun again."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
import uvloop

from fairwarning.core.resources import DEFAULT_SUBSCRIPTION
from fairwarning.operator_api import (
    subprocess_pool,
)
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.subprocess_pool import SubprocessPool
from tests.operator_api.rig import Rig

SMALL_ANSWER = [b"ok", b'{"a": 1}']
GROUP = f"/subscriptions/{DEFAULT_SUBSCRIPTION}/resourceGroups/costs"
DEPLOYMENT = f"{GROUP}/providers/Microsoft.Resources/deployments/d"
VERSION = {"api-version": "2024-11-01"}


async def endless() -> AsyncIterator[bytes]:
    yield b"100"
    await asyncio.Event().wait()


async def small() -> AsyncIterator[bytes]:
    yield b"10"
    yield b"{a: 1,}"


async def test_a_process_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[asyncio.subprocess.Process] = []
    limits: list[asyncio.Timeout] = []
    begin, limit = asyncio.create_subprocess_exec, asyncio.timeout

    async def begin_and_end_the_time(*words: Any, **more: Any) -> asyncio.subprocess.Process:
        begun.append(await begin(*words, **more))
        limits[0].reschedule(asyncio.get_running_loop().time())
        return begun[-1]

    def limit_later(within_s: float) -> asyncio.Timeout:
        assert within_s == subprocess_pool.WORK_S_MAX
        limits.append(limit(None))
        return limits[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", begin_and_end_the_time)
    monkeypatch.setattr(asyncio, "timeout", limit_later)
    with pytest.raises(Problem) as raised:
        await SubprocessPool().run("arm", endless, caller="")
    assert raised.value.code == "body-too-costly"
    assert [each.returncode is not None for each in begun] == [True]


async def test_one_caller_does_not_take_all_processes() -> None:
    pool = SubprocessPool()
    waiting = [asyncio.create_task(pool.run("arm", endless, caller="one")) for _ in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(Problem) as raised:
        await pool.run("arm", endless, caller="one")
    assert (raised.value.status, raised.value.code) == (429, "too-many-large-bodies")
    assert raised.value.headers["Retry-After"] == "5"
    assert await pool.run("arm", small, caller="other") == SMALL_ANSWER
    assert not any(task.done() for task in waiting)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    assert await pool.run("arm", small, caller="one") == SMALL_ANSWER


class Killer:
    """Kills the first processes that are started, as the kernel does when memory is short."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 0
        self.begun = 0
        real = asyncio.create_subprocess_exec

        async def begin(*words: Any, **more: Any) -> asyncio.subprocess.Process:
            process = await real(*words, **more)
            self.begun += 1
            if self.left:
                self.left -= 1
                process.kill()
            return process

        monkeypatch.setattr(asyncio, "create_subprocess_exec", begin)


@pytest.fixture
def killer(monkeypatch: pytest.MonkeyPatch) -> Killer:
    return Killer(monkeypatch)


async def test_a_process_that_was_killed_is_begun_again(killer: Killer) -> None:
    killer.left = 1
    assert await SubprocessPool().run("arm", small, caller="") == SMALL_ANSWER
    assert killer.begun == 2


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_process_may_be_killed_while_it_is_sent_something(
    monkeypatch: pytest.MonkeyPatch, run: Callable[[Coroutine[Any, Any, Problem]], Problem]
) -> None:
    begun: list[asyncio.subprocess.Process] = []
    real = asyncio.create_subprocess_exec

    async def begin(*words: Any, **more: Any) -> asyncio.subprocess.Process:
        begun.append(await real(*words, **more))
        return begun[-1]

    async def killing() -> AsyncIterator[bytes]:
        yield b"10"
        begun[-1].kill()
        await begun[-1].wait()
        for _ in range(3):
            yield b"x" * 100_000
            await asyncio.sleep(0)

    async def problem() -> Problem:
        with pytest.raises(Problem) as raised:
            await SubprocessPool().run("arm", killing, caller="")
        return raised.value

    monkeypatch.setattr(asyncio, "create_subprocess_exec", begin)
    found = run(problem())
    assert (found.status, found.code, len(begun)) == (503, "large-body-interrupted", 2)


LARGE = {"large": "x" * 20_000}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            f"{GROUP}/providers/Microsoft.Network/applicationGateways/n",
            {"location": "westeurope", "properties": LARGE},
        ),
        (DEPLOYMENT, {"properties": {"template": {"variables": LARGE, "resources": []}}}),
    ],
)
async def test_a_body_is_not_blamed_for_a_process_that_was_killed(
    rig: Rig, killer: Killer, path: str, body: Any
) -> None:
    url = rig.node.control_url
    group = {"location": "westeurope"}
    assert (await rig.api.put(url + GROUP, params=VERSION, json=group)).status_code == 201
    killer.left = 2
    answer = await rig.api.put(url + path, params=VERSION, json=body)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5"), answer.text
    assert answer.json()["error"]["code"] == "ServiceUnavailable"
    assert (await rig.api.get(url + path, params=VERSION)).status_code == 404
    answer = await rig.api.put(url + path, params=VERSION, json=body)
    assert answer.status_code == 201, answer.text


async def test_a_deployment_goes_on_in_another_process(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process is killed after each answer, until it has been replaced once."""
    real = subprocess_pool.Subprocess.receive
    answers = 0

    async def receive(self: subprocess_pool.Subprocess) -> bytes:
        nonlocal answers
        said = await real(self)
        answers += 1
        if answers == 4:
            self._process.kill()
            await self._process.wait()
        return said

    monkeypatch.setattr(subprocess_pool.Subprocess, "receive", receive)
    names = [f"n{number}" for number in range(3)]
    kind = "Microsoft.Network/networkInterfaces"
    resources = [
        {"type": kind, "name": each, "apiVersion": "2024-05-01", "location": "westeurope",
         "tags": {"before": f"[reference('{names[0]}').provisioningState]"} if n else {},
         "properties": {}}
        for n, each in enumerate(names)
    ]  # fmt: skip
    template = {"variables": LARGE, "resources": resources}
    url = rig.node.control_url
    await rig.api.put(url + GROUP, params=VERSION, json={"location": "westeurope"})
    body = {"properties": {"template": template}}
    answer = await rig.api.put(url + DEPLOYMENT, params=VERSION, json=body)
    assert answer.status_code == 201, answer.text
    found = (await rig.api.get(url + DEPLOYMENT, params=VERSION)).json()["properties"]
    assert (found["provisioningState"], len(found["outputResources"])) == ("Succeeded", 3), found
    last = (await rig.api.get(f"{url}{GROUP}/providers/{kind}/n2", params=VERSION)).json()
    assert last["tags"] == {"before": "Succeeded"}
