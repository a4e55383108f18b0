"""What a body costs is bounded before it is paid, and the event loop is never held for long."""

import asyncio
import gc
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pytest
import uvloop

from fairwarning.azure_api.deployments import template_runner
from fairwarning.azure_api.templates.template_job import KEPT_VALUES_MAX
from fairwarning.core.model import Scope
from fairwarning.core.resources import DEFAULT_SUBSCRIPTION
from fairwarning.operator_api import (
    body_memory,
    fleet_plans,
    http_protocol,
    offload,
    subprocess_pool,
)
from fairwarning.operator_api.auth import Role, Tokens
from fairwarning.operator_api.fair_queue import FairQueue
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.subprocess_pool import SubprocessPool
from tests.operator_api.rig import ME, Rig
from tests.operator_api.test_http_protocol import talk
from tests.support.patience import HANG_S

T = TypeVar("T")
SMALL_ANSWER = [b"ok", b'{"a": 1}']
MEGA = 4 * 1024 * 1024 - 1024
HOLD_CPU_S_MAX = 0.25
"""Of the processor's time, which other programs hardly change. It is to be 50 ms; what is refused
here used to take a second and more."""
GROUP = f"/subscriptions/{DEFAULT_SUBSCRIPTION}/resourceGroups/costs"
DEPLOYMENT = f"{GROUP}/providers/Microsoft.Resources/deployments/d"
MANY = [{f"name-{number}": "text"} for number in range(60_000)]
VERSION = {"api-version": "2024-11-01"}
TOML = {"Content-Type": "application/toml"}


async def longest_hold(work: Awaitable[T]) -> tuple[T, float]:
    """What came of it, and the processor's time of the longest round of the event loop."""
    longest = 0.0
    task = asyncio.ensure_future(work)
    # The garbage of all tests before this one is no part of the work.
    gc.collect()
    gc.disable()
    try:
        while not task.done():
            began = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - began)
    finally:
        gc.enable()
    return task.result(), longest


def deployment(variables: object, outputs: object = None) -> bytes:
    template = {"variables": variables, "resources": [], "outputs": outputs}
    return json.dumps({"properties": {"mode": "Incremental", "template": template}}).encode()


def nested_loops() -> bytes:
    inner = {"copy": [{"name": "b", "count": 800, "input": "[concat('x', copyIndex('b'))]"}]}
    return deployment({"copy": [{"name": "a", "count": 800, "input": inner}]})


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{/" + b"*" * MEGA, 400),
        (b"{" + b"a " * (MEGA // 2), 400),
        (b"{" + b", " * (MEGA // 2), 400),
        (b'{"a":[' + b"[]," * (MEGA // 3 - 3) + b"[]]}", 400),
        (b'{"a":' + b"[" * 200_000, 400),
        (b'{a:"' + b'\\"' * (MEGA // 2), 400),
        (b'{a:"' + b"\n" * MEGA, 400),
        (nested_loops(), 201),
        (deployment({"many": [0] * 190_000}), 201),
        (deployment({"many": MANY}), 201),
        (deployment({}, {"many": {"type": "array", "value": MANY}}), 201),
    ],
)
async def test_no_body_of_arm_holds_the_event_loop(rig: Rig, body: bytes, status: int) -> None:
    await rig.api.put(rig.node.control_url + GROUP, params=VERSION, json={"location": "westeurope"})
    url = rig.node.control_url + DEPLOYMENT
    answer, hold = await longest_hold(rig.api.put(url, params=VERSION, content=body))
    assert answer.status_code == status, answer.text[:300]
    assert hold < HOLD_CPU_S_MAX


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ({"variables": {"many": MANY}, "resources": []}, ""),
        ({"resources": [], "outputs": {"many": {"type": "array", "value": MANY}}}, "outputs"),
        ({"resources": [], "parameters": {"many": {"type": "array", "defaultValue": MANY}}},
         "parameters"),
        ({"resources": [{"type": "Microsoft.Network/networkInterfaces", "name": "n",
                         "apiVersion": "2024-05-01", "location": "westeurope",
                         "properties": {"many": MANY}}]}, "resource"),
    ],
)  # fmt: skip
async def test_nothing_large_of_a_template_comes_to_the_event_loop(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, template: Any, why: str
) -> None:
    sizes: list[int] = []
    real = subprocess_pool.Subprocess.receive

    async def receive(self: subprocess_pool.Subprocess) -> bytes:
        said = await real(self)
        sizes.append(len(said))
        return said

    monkeypatch.setattr(subprocess_pool.Subprocess, "receive", receive)
    url = rig.node.control_url
    await rig.api.put(url + GROUP, params=VERSION, json={"location": "westeurope"})
    body = {"properties": {"template": template}}
    answer = await rig.api.put(url + DEPLOYMENT, params=VERSION, json=body)
    assert answer.status_code == 201, answer.text
    assert 0 < max(sizes) < 1_000_000
    found = (await rig.api.get(url + DEPLOYMENT, params=VERSION)).json()["properties"]
    assert found["provisioningState"] == ("Failed" if why else "Succeeded")
    said = json.dumps(found.get("error", {}))
    assert not why or (f"more than {KEPT_VALUES_MAX:,} values" in said and why in said)


async def test_a_small_template_that_costs_much_is_worked_on_elsewhere(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    real = subprocess_pool.started

    def started(job: str) -> Any:
        begun.append(job)
        return real(job)

    monkeypatch.setattr(template_runner, "started", started)
    url = rig.node.control_url
    await rig.api.put(url + GROUP, params=VERSION, json={"location": "westeurope"})
    cheap = await rig.api.put(url + DEPLOYMENT, params=VERSION, content=deployment({"a": 1}))
    assert (cheap.status_code, begun) == (201, [])
    loops = await rig.api.put(url + DEPLOYMENT, params=VERSION, content=nested_loops())
    assert (loops.status_code, begun) == (200, ["template"])


async def test_no_preview_of_a_rollout_holds_the_event_loop(rig: Rig) -> None:
    text = "test = true\n" + "".join(f'[[vm]]\nname = "vm-{n}"\n' for n in range(300))
    Rig.check(await rig.api.post("/fleet", content=text, headers=TOML), 200)
    times = [f"{number // 2:02}:{number % 2 * 30:02}" for number in range(48)]
    body = {
        "type": "Reboot",
        "scopes": [f"vm-{n}" for n in range(300)],
        "windows": [{"from": at, "to": f"{at[:3]}{int(at[3:]) + 21}"} for at in times],
        "timeZone": "Europe/Berlin",
        "blackouts": [f"{year}-01-02/{year}-12-30" for year in range(2026, 2100)],
    }
    answer, hold = await longest_hold(rig.api.post("/rollouts/plan", json=body))
    steps = Rig.check(answer, 200)["steps"]
    assert steps[0]["notBefore"] is not None
    assert hold < HOLD_CPU_S_MAX


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"a . " * 40_000 + b"a = 1", "fleet-invalid"),
        (b"".join(b"k%d=1\n" % number for number in range(400_000)), "fleet-invalid"),
        (b"a = " + b"1" * MEGA, "fleet-invalid"),
        (b"a = '''" + b"\n" * MEGA, "fleet-invalid"),
    ],
)
async def test_no_fleet_file_holds_the_event_loop(rig: Rig, body: bytes, code: str) -> None:
    asked = rig.api.post("/fleet/plan", content=body, headers=TOML)
    answer, hold = await longest_hold(asked)
    assert Rig.check(answer, 422)["code"] == code
    assert hold < HOLD_CPU_S_MAX


async def test_a_large_fleet_is_planned_elsewhere_and_made_in_batches(rig: Rig) -> None:
    text = "test = true\n" + "".join(f'[[vm]]\nname = "vm-{n}"\n' for n in range(2_000))
    answer, hold = await longest_hold(rig.api.post("/fleet", content=text, headers=TOML))
    assert len(Rig.check(answer, 200)["changes"]) >= 2_000
    assert hold < HOLD_CPU_S_MAX
    assert (await rig.get("/instances/vm-1999"))["scope"].endswith("vm-1999")


async def test_a_short_file_of_many_instances_is_planned_elsewhere_too(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = SubprocessPool.run

    async def run(
        self: SubprocessPool, job: str, given: Callable[[], AsyncIterable[bytes]], *, caller: str
    ) -> list[bytes]:
        asked.append(job)
        return await real(self, job, given, caller=caller)

    monkeypatch.setattr(SubprocessPool, "run", run)
    sets = [f'[[scale_set]]\nname = "s{n}"\ncapacity = 1000\n' for n in range(101)]
    await rig.api.post("/fleet/plan", content="".join(sets[:1]), headers=TOML)
    assert not asked
    answer = await rig.api.post("/fleet/plan", content="".join(sets[:2]), headers=TOML)
    assert (answer.status_code, asked) == (200, ["fleet"])
    answer = await rig.api.post("/fleet/plan", content="".join(sets), headers=TOML)
    assert "at most 100,000 instances" in Rig.check(answer, 422)["detail"]


async def test_nobody_reads_the_body_of_whoever_only_asks(rig: Rig) -> None:
    body = b"{/" + b"*" * MEGA
    api, arm = rig.node.control_url + "/api/v1/events", rig.node.control_url + "/subscriptions"
    for url, parameters in ((api, {}), (arm, VERSION)):
        asked = rig.api.request("GET", url, params=parameters, content=body)
        answer, hold = await longest_hold(asked)
        assert answer.status_code == 200
        assert hold < HOLD_CPU_S_MAX
    assert (await rig.get("/events"))["events"] == []


async def test_a_body_that_nobody_reads_has_an_end(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "UNREAD_S_MAX", 0.05)
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert (await talk(rig, head)).startswith(b"HTTP/1.1 200")
    monkeypatch.setattr(http_protocol, "UNREAD_S_MAX", HANG_S)
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    assert b"HTTP/1.1 4" not in await talk(rig, head, *[chunk] * 80)


async def test_requests_in_one_line_are_begun_a_few_at_a_time(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[int] = []
    real = http_protocol.LimitedHttp.on_headers_complete

    def begin(self: http_protocol.LimitedHttp) -> None:
        real(self)
        waiting.append(len(self.pipeline))

    monkeypatch.setattr(http_protocol.LimitedHttp, "on_headers_complete", begin)
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    said = await talk(rig, request * 6_000 + last)
    assert said.count(b"HTTP/1.1 200 OK") == 6_001
    assert max(waiting) < 200


async def test_all_bodies_together_have_a_limit_and_small_ones_never_wait(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_memory, "CLIENT_BYTES_MAX", 200_000)
    url = urlsplit(rig.node.control_url)
    head = (
        b"POST /api/v1/fleet/plan HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/toml\r\nContent-Length: 1000000\r\n\r\n"
    )
    _, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(head + b"#" * 200_000)
    await writer.drain()
    comment = b"#" * 200_000
    async with asyncio.timeout(HANG_S):
        while (
            answer := await rig.api.post("/fleet/plan", content=comment, headers=TOML)
        ).status_code == 200:
            pass  # The half body has not come yet.
    assert Rig.check(answer, 503)["code"] == "too-many-bodies"
    small = await rig.api.post("/fleet/plan", content=b"#" * 10_000, headers=TOML)
    assert small.status_code == 200
    writer.close()
    async with asyncio.timeout(HANG_S):
        while (await rig.api.post("/fleet/plan", content=comment, headers=TOML)).status_code == 503:
            pass


async def endless() -> AsyncIterator[bytes]:
    yield b"100"
    await asyncio.Event().wait()


async def small() -> AsyncIterator[bytes]:
    yield b"10"
    yield b"{a: 1,}"


async def test_a_process_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[asyncio.subprocess.Process] = []
    real = asyncio.create_subprocess_exec

    async def begin(*words: Any, **more: Any) -> asyncio.subprocess.Process:
        begun.append(await real(*words, **more))
        return begun[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", begin)
    monkeypatch.setattr(subprocess_pool, "WORK_S_MAX", 0.05)
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
            f"{GROUP}/providers/Microsoft.Network/networkInterfaces/n",
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
    assert answer.json()["error"]["code"] == "LargeBodyInterrupted"
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
