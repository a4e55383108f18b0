"""The journal as a stream that can be left and taken up again."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairwarning.engine.protocols import StoreDown
from fairwarning.operator_api import stream
from tests.operator_api.rig import Rig
from tests.support.patience import HANG_S


async def read(rig: Rig, count: int, url: str = "/stream", **headers: str) -> list[dict[str, Any]]:
    """The first so many entries."""
    found: list[dict[str, Any]] = []
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with asyncio.timeout(HANG_S), rig.api.stream("GET", url, headers=named) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        id = ""
        async for line in answer.aiter_lines():
            if line.startswith("id: "):
                id = line.removeprefix("id: ")
            if line.startswith("data: "):
                entry = json.loads(line.removeprefix("data: "))
                assert entry["position"] == id
                found.append(entry)
                if len(found) == count:
                    return found
    raise AssertionError("the stream ended")


async def test_a_stream_begins_now_and_tells_what_happens_next(rig: Rig) -> None:
    await rig.schedule("db")
    async with rig.api.stream("GET", "/stream") as answer:
        lines = answer.aiter_lines()
        assert await anext(lines) == "retry: 1000"
        event = await rig.schedule("web-0")
        async with asyncio.timeout(HANG_S):
            async for line in lines:
                if line.startswith("data: "):
                    assert json.loads(line.removeprefix("data: "))["event"] == event["id"]
                    break


async def test_whoever_comes_back_misses_nothing(rig: Rig) -> None:
    await rig.schedule("web-0")
    history = (await rig.get("/history"))["entries"]
    first = history[-1]
    await rig.schedule("web-1")
    expected = (await rig.get("/history"))["entries"][::-1][1:]
    seen = await read(rig, len(expected), last_event_id=first["position"])
    assert seen == expected


async def test_a_position_that_is_none_is_refused(rig: Rig) -> None:
    answer = await rig.api.get("/stream", headers={"Last-Event-ID": "yesterday"})
    assert Rig.check(answer, 422)["code"] == "cursor-invalid"


async def test_a_token_made_is_in_the_history_without_its_secret(rig: Rig) -> None:
    made = await rig.post("/tokens", {"name": "ci", "role": "viewer"}, 201)
    (entry, *_) = (await rig.get("/history"))["entries"]
    assert (entry["kind"], entry["scope"], entry["by"]) == ("Noted", "", "operator:local")
    assert "ci" in entry["text"]
    assert made["secret"] not in json.dumps(entry)


async def test_a_reader_that_comes_back_goes_on_where_it_was_whatever_its_url_says(
    rig: Rig,
) -> None:
    """A browser connects again with the URL that it began with, and with its last position."""
    await rig.schedule("web-0")
    history = (await rig.get("/history"))["entries"][::-1]
    url = f"/stream?after={history[0]['position']}"
    seen = await read(rig, 1, url, last_event_id=history[-2]["position"])
    assert seen == [history[-1]]


async def test_a_silent_stream_says_that_it_is_there(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a proxy, or the reader itself, takes it for dead."""
    monkeypatch.setattr(stream, "KEEP_ALIVE_S", 0.01)
    async with asyncio.timeout(HANG_S), rig.api.stream("GET", "/stream") as answer:
        lines = answer.aiter_lines()
        assert [await anext(lines) for _ in range(5)] == [
            "retry: 1000",
            "",
            ": still here",
            "",
            ": still here",
        ]


async def test_an_outage_ends_no_stream(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can say that its token is not good any more."""
    made = await rig.post("/tokens", {"name": "ci", "role": "viewer"}, 201)
    headers = {"Authorization": f"Bearer {made['secret']}"}

    async def down(*_: object) -> None:
        raise StoreDown("switched off by the test")

    async with (
        asyncio.timeout(HANG_S),
        rig.api.stream("GET", "/stream", headers=headers) as answer,
    ):
        lines = answer.aiter_lines()
        assert await anext(lines) == "retry: 1000"
        monkeypatch.setattr(rig.node.store, "record", down)
        event = await rig.schedule("db")
        told = [line async for line in lines_until(lines, "data: ")]
        assert json.loads(told[-1].removeprefix("data: "))["event"] == event["id"]


async def lines_until(lines: AsyncIterator[str], start: str) -> AsyncIterator[str]:
    async for line in lines:
        yield line
        if line.startswith(start):
            return
