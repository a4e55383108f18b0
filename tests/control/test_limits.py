"""What a stranger can make the server hold is limited, and bad HTTP gets a problem."""

import asyncio
from urllib.parse import urlsplit

import pytest

from fairwarning.control import http
from tests.control.rig import Rig
from tests.support.patience import HANG_S


async def talk(rig: Rig, *parts: bytes) -> bytes:
    url = urlsplit(rig.node.control_url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
    except ConnectionError:
        pass
    async with asyncio.timeout(HANG_S):
        try:
            said = await reader.read()
        except ConnectionResetError:
            said = b""
    writer.close()
    return said


async def test_an_endless_head_is_cut_off(rig: Rig) -> None:
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "
    said = await talk(rig, head, *[b"x" * 65_536] * 100)
    assert said == b"" or said.startswith(b"HTTP/1.1 431")


async def test_what_is_no_http_gets_a_problem(rig: Rig) -> None:
    said = await talk(rig, b"FOO\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 400")
    assert b"application/problem+json" in said


async def test_whoever_never_ends_his_head_is_dropped(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "HEAD_S_MAX", 0.05)
    assert await talk(rig, b"GET /healthz HTTP/1.1\r\nHost:") == b""


async def test_a_key_of_thousands_of_parts_is_refused_at_once(rig: Rig) -> None:
    text = "test = true\n" + "a." * 100_000 + "b = 1"
    answer = await rig.api.post(
        "/fleet/plan", content=text, headers={"Content-Type": "application/toml"}
    )
    assert Rig.check(answer, 422)["line"] == 2


async def test_a_token_may_not_outlast_the_calendar(rig: Rig) -> None:
    for expires in ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-12:00"):
        await rig.api.post("/tokens", json={"name": "t", "role": "viewer", "expires": expires})
    await rig.get("/tokens")


async def test_a_position_of_another_form_is_refused(rig: Rig) -> None:
    for after in ("5-5", "x", "9" * 19):
        assert (await rig.get("/history", 422, after=after))["code"] == "cursor-invalid"
        answer = await rig.api.get("/stream", headers={"Last-Event-ID": after})
        assert Rig.check(answer, 422)["code"] == "cursor-invalid"


async def test_clocks_that_are_moved_at_once_lose_no_time(rig: Rig) -> None:
    for name in ("web-0", "workers_0", "db"):
        await rig.schedule(name, duration="7m")
    before = rig.clock.now()
    await asyncio.gather(*(rig.post("/clock/advance", {"by": "1h"}) for _ in range(4)))
    assert rig.clock.now() - before == 4 * 3_600_000


async def test_asking_for_the_head_of_a_stream_ends(rig: Rig) -> None:
    async with asyncio.timeout(HANG_S):
        assert (await rig.api.head("/stream")).status_code == 200


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nhost: evil.example\r\n\r\n",
        b"GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://localhost:1/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
    ],
)
async def test_a_request_names_one_host(rig: Rig, head: bytes) -> None:
    said = await talk(rig, head)
    assert said.startswith(b"HTTP/1.1 400")
    assert b"host-unclear" in said


@pytest.mark.parametrize(
    "head",
    [
        b"GET http://localhost:8170/healthz HTTP/1.1\r\nHost: LOCALHOST:8170\r\n",
        b"GET http://[::1]:8170/healthz HTTP/1.1\r\nHost: [::1]:8170\r\n",
        b"GET /healthz HTTP/1.0\r\n",
    ],
)
async def test_an_absolute_target_of_the_same_host_is_fine(rig: Rig, head: bytes) -> None:
    said = await talk(rig, head + b"Connection: close\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/tokens", {"name": "local\n", "role": "viewer"}),
        ("/tokens", {"name": "t", "role": "admin\n"}),
        ("/events", {"type": "Reboot", "targets": ["db"], "notice": "15m\n"}),
        ("/rollouts/plan", {"type": "Reboot", "windows": [{"from": "02:00\n", "to": "03:00"}]}),
        ("/rollouts/plan", {"type": "Reboot", "blackouts": ["2026-12-24\n"]}),
    ],
)
async def test_a_name_is_matched_to_its_very_end(
    rig: Rig, path: str, body: dict[str, object]
) -> None:
    answer = await rig.api.post(path, json=body)
    assert Rig.check(answer, 422)["code"] == "body-invalid"


async def test_a_duration_that_is_none_is_said_in_words(rig: Rig) -> None:
    body = {"type": "Reboot", "targets": ["web-0"], "notice": "soon"}
    problem = await rig.post("/events", body, 422)
    assert "no duration; write one like" in problem["detail"]
