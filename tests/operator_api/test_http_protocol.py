"""What a stranger can make the server hold is limited, and bad HTTP gets a problem."""

import asyncio
from urllib.parse import urlsplit

import pytest

from fairwarning.operator_api import dispatch, http_protocol
from tests.operator_api.rig import Rig
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
    monkeypatch.setattr(http_protocol, "HEAD_S_MAX", 0.05)
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


@pytest.mark.parametrize(
    ("path", "name"), [("/scopes/db/policy", "BODY_BYTES_MAX"), ("/fleet/plan", "FLEET_BYTES_MAX")]
)
async def test_a_body_may_be_as_large_as_its_limit_and_no_larger(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, path: str, name: str
) -> None:
    monkeypatch.setattr(dispatch, name, 100)
    headers = {"Content-Type": "application/json"}
    answer = await rig.api.post(path, content=b"{}".ljust(100), headers=headers)
    assert answer.status_code == 200
    answer = await rig.api.post(path, content=b"{}".ljust(101), headers=headers)
    assert Rig.check(answer, 413)["code"] == "body-too-large"
    assert answer.headers["connection"] == "close"


async def test_a_body_that_does_not_come_is_not_waited_for(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "BODY_S_MAX", 0.05)
    head = (
        b"POST /api/v1/events HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n"
    )
    said = await talk(rig, head, b"{")
    assert said.startswith(b"HTTP/1.1 408")
    assert b"body-too-slow" in said


async def test_whoever_deletes_says_all_of_it_in_the_url(rig: Rig) -> None:
    answer = await rig.api.request("DELETE", "/faults", content=b"{not read")
    assert Rig.check(answer, 200) == {"cleared": 0}


async def test_a_reason_is_given_once_and_has_a_length(rig: Rig) -> None:
    longest = "y" * dispatch.WHY_CHARS_MAX
    for reasons in ([longest + "y"], ["a", "b"], ["a", "a"], ["nul\0"]):
        answer = await rig.api.delete("/instances/web-3", params={"why": reasons})
        assert Rig.check(answer, 422)["code"] == "parameter-invalid"
    await rig.delete("/instances/web-3", why=longest)
    (entry, *_) = (await rig.get("/history"))["entries"]
    assert entry["why"] == longest


async def test_a_parameter_is_given_once_unless_it_may_have_several(rig: Rig) -> None:
    await rig.schedule("web-0")
    problem = await rig.get("/events", 422, scope=["web", "db"])
    assert problem["code"] == "parameter-twice"
    found = await rig.get("/events", phase=["cancelled", "scheduled"], type=["Freeze", "Reboot"])
    assert len(found["events"]) == 1


async def test_what_may_be_left_out_is_read_when_it_is_there(rig: Rig) -> None:
    """Else a slip in an optional body would be taken for none."""
    event = await rig.schedule("web-0")
    problem = await rig.post(f"/events/{event['id']}/cancel", {"reson": "slip"}, 422)
    assert problem["code"] == "body-invalid"
    answer = await rig.api.post(f"/events/{event['id']}/cancel", content=b"{")
    assert Rig.check(answer, 415)["code"] == "media-type-unknown"
    problem = await rig.post(f"/events/{event['id']}/approve", {"reason": "x"}, 422)
    assert problem["code"] == "body-not-wanted"
    assert (await rig.get(f"/events/{event['id']}"))["phase"] == "scheduled"


@pytest.mark.parametrize("nothing", [b"", b"null", b" {}\n"])
async def test_a_body_that_says_nothing_is_none(rig: Rig, nothing: bytes) -> None:
    answer = await rig.api.post("/instances/db/restart", content=nothing)
    assert Rig.check(answer, 202)["operation"] == "restart"
