"""A fleet of any size is planned and replaced with an answer of many lines."""

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from fairwarning.core.refusals import Code, Refused
from fairwarning.operator_api import parse_request, spooled_bodies
from tests.operator_api.rig import Rig
from tests.support.patience import HANG_S

LINES = {"Content-Type": "application/toml", "Accept": "application/x-ndjson"}
TWENTY = "\n".join(f'[[scale_set]]\nname = "s{n}"\ncapacity = 100' for n in range(20))


def lines_of(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(each) for each in answer.text.splitlines()]


async def test_a_plan_and_a_replacement_tell_changes_progress_and_the_end(rig: Rig) -> None:
    planned = lines_of(await rig.api.post("/fleet/plan", content=TWENTY, headers=LINES))
    assert [planned[0]["step"], planned[-1]["step"]] == ["plan", "done"]
    assert planned[0]["scopes"] == 20
    assert len(planned[0]["kept"]) == 3
    added = [each for line in planned for each in line.get("changes", ())]
    assert len(added) == 20
    done = lines_of(await rig.api.put("/fleet", content=TWENTY, headers=LINES))
    assert [each for line in done for each in line.get("changes", ())] == added
    progress = [line["done"] for line in done if line["step"] == "progress"]
    assert progress == sorted(progress)
    assert done[-1] == {"step": "done", "scopes": 20, "done": 20}
    assert (await rig.get("/scopes/s19"))["capacity"] == 100


async def test_a_body_over_the_ordinary_limit_is_refused_unless_lines_are_accepted(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = TWENTY + "\n" + ("#" * 999 + "\n") * 5_000
    assert len(large) > parse_request.FLEET_BYTES_MAX
    toml = {"Content-Type": "application/toml"}
    refused = await rig.api.put("/fleet", content=large, headers=toml)
    assert Rig.check(refused, 413)["code"] == "body-too-large"
    assert lines_of(await rig.api.put("/fleet", content=large, headers=LINES))[-1]["done"] == 20
    monkeypatch.setattr(spooled_bodies, "BYTES_MAX", 100_000)
    refused = await rig.api.put("/fleet", content=large[:300_000], headers=LINES)
    assert Rig.check(refused, 413)["code"] == "body-too-large"


async def test_a_mistake_gets_its_status_and_changes_nothing(rig: Rig) -> None:
    wrong = TWENTY + '\n[[vm]]\nname = "a"\ncapcity = 1'
    answer = await rig.api.put("/fleet", content=wrong, headers=LINES)
    found = Rig.check(answer, 422)
    assert (found["code"], found["line"]) == ("fleet-invalid", 63)
    assert len((await rig.get("/fleet"))["scopes"]) == 3


async def test_a_failure_on_the_way_says_how_much_is_done(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = rig.node.engine.create
    calls = 0

    async def create(*args: Any, **named: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise Refused(Code.ADDRESS_IN_USE, "somebody took the address")
        await real(*args, **named)

    monkeypatch.setattr(rig.node.engine, "create", create)
    lines = lines_of(await rig.api.put("/fleet", content=TWENTY, headers=LINES))
    problem = lines[-1]["problem"]
    assert problem["code"] == "address-in-use"
    assert 0 < problem["done"] < problem["scopes"] == 20
    assert "somebody took the address" in problem["detail"]
    monkeypatch.setattr(rig.node.engine, "create", real)
    again = lines_of(await rig.api.put("/fleet", content=TWENTY, headers=LINES))
    assert again[-1]["done"] == 20 - problem["done"]


async def test_one_caller_holds_one_large_body_at_a_time(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spooled_bodies, "CALLER_AT_ONCE_MAX", 0)
    answer = await rig.api.put("/fleet", content=TWENTY, headers=LINES)
    assert Rig.check(answer, 503)["code"] == "too-many-large-bodies"


async def test_a_slow_body_is_cut(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spooled_bodies, "BEGIN_S_MAX", 0)
    monkeypatch.setattr(spooled_bodies, "BYTES_PER_S_MIN", 10**12)
    url = urlsplit(rig.node.control_url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(
        b"PUT /api/v1/fleet HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/toml\r\n"
        b"Accept: application/x-ndjson\r\nContent-Length: 1000\r\n\r\n#"
    )
    async with asyncio.timeout(HANG_S):
        head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408")
    writer.close()
