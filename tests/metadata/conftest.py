"""The endpoint on its real event loop, a virtual clock, and addresses of the loopback range."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

import pytest
import uvloop

from fairwarning.metadata import rate_limit
from tests.metadata.rig import Rig, Seconds


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(autouse=True)
def nothing_breaks(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever a client does, no exception escapes into the log."""
    yield
    broken = [each for each in caplog.get_records("call") if each.levelno >= logging.ERROR]
    assert not broken, [each.getMessage() for each in broken]


@pytest.fixture(autouse=True)
async def nobody_stays() -> AsyncIterator[None]:
    """What a failed test leaves running is stopped: uvloop would wait for it for ever."""
    yield
    for rig in list(Rig.running):
        await rig.stop()


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig()
    await rig.start()
    yield rig
    await rig.stop()


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    stopped = Seconds()
    monkeypatch.setattr(rate_limit, "time", stopped)
    return stopped
