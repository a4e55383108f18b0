"""An open page hears of changes for as long as its reader may hear them."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from fairwarning.portal import live_updates
from tests.support.patience import HANG_S


async def nothing_more(_: object) -> AsyncIterator[object]:
    await asyncio.Event().wait()
    yield None


async def end() -> str:
    return "0"


QUIET: Any = SimpleNamespace(
    engine=SimpleNamespace(changes=nothing_more), store=SimpleNamespace(end=end)
)
"""A fleet in which nothing happens."""


async def test_a_stream_without_news_ends_when_its_reader_may_hear_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A token that expires is no news of the fleet, so no change tells of it."""
    monkeypatch.setattr(live_updates, "KEEP_ALIVE_S", 0.001)
    answers = iter([True, True, False])

    async def may_go_on() -> bool:
        return next(answers)

    stream = live_updates.changes(QUIET, asyncio.Event(), may_go_on)
    async with asyncio.timeout(HANG_S):
        lines = [await anext(stream, b"end") for _ in range(4)]
    assert [line.partition(b":")[0] for line in lines] == [b"retry", b"event", b"", b"end"]
