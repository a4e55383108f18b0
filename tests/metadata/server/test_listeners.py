"""Listeners: an address that is taken, a server out of reach, and one without file descriptors."""

import asyncio
import errno
import socket

import pytest

from fairwarning.boot import make_metadata_server
from fairwarning.engine.protocols import Clock
from fairwarning.metadata import server
from tests.metadata.rig import Rig, request
from tests.support.patience import HANG_S


async def test_an_address_that_is_taken_is_named_and_the_others_are_freed(rig: Rig) -> None:
    clock: Clock = rig.clock
    with socket.create_server(("127.0.0.1", 0)) as free:
        other = free.getsockname()
    with pytest.raises(OSError, match=f"127.0.0.1:{rig.address[1]}") as caught:
        await make_metadata_server(
            rig.engine, rig.store, clock, [other, rig.address], rig.rules, rig.faults
        )
    assert caught.value.errno == errno.EADDRINUSE
    socket.create_server(other).close()


async def test_a_server_out_of_reach_cuts_all_and_is_back_at_its_address(rig: Rig) -> None:
    assert rig.server is not None
    client, address = await rig.connect(), rig.address
    await client.send(request())
    await client.receive()
    rig.server.set_reachable(False)
    assert await client.is_closed()
    with pytest.raises(ConnectionRefusedError):
        await rig.connect()
    assert rig.address == address
    rig.server.set_reachable(True)
    assert (await rig.ask()).status == 200


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EPERM])
async def test_accepting_goes_on_after_a_pause(
    rig: Rig, code: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert rig.server is not None
    monkeypatch.setattr(server, "_OUT_OF_FILES_PAUSE_S", 0.0)
    (listener,) = rig.server._listeners
    failures, accept = [OSError(code, "not now")] * 2, listener._accept

    def fail_at_first() -> object:
        if failures:
            raise failures.pop()
        return accept()

    monkeypatch.setattr(listener, "_accept", fail_at_first)
    async with asyncio.timeout(HANG_S):
        assert (await rig.ask()).status == 200
    assert not failures
    assert ("cannot accept" in caplog.text) is (code == errno.EPERM)


@pytest.mark.parametrize(
    ("host", "url"), [("127.0.0.1", "http://127.0.0.1:"), ("::1", "http://[::1]:")]
)
async def test_an_ipv6_address_is_in_brackets_in_the_url(host: str, url: str) -> None:
    rig = Rig()
    await rig.start(host)
    assert rig.server is not None
    (found,) = rig.server.urls
    assert found.startswith(url)
    await rig.stop()


async def test_polling_rates_are_sampled_every_so_often_over_the_time_since(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Time:
        """Ten seconds pass between two looks at the clock."""

        now_s = 1_000.0

        def monotonic(self) -> float:
            self.now_s += 10.0
            return self.now_s

    time = Time()
    monkeypatch.setattr(server, "_SWEEP_S", 0.0)
    monkeypatch.setattr(server, "SAMPLE_S", 30.0)
    monkeypatch.setattr(server, "time", time)
    samples: list[tuple[float, float]] = []
    assert rig.server is not None
    rig.server.on_sample = lambda _, since_s: samples.append((time.now_s, since_s))
    sweep = asyncio.create_task(rig.server._sweep())
    async with asyncio.timeout(HANG_S):
        while len(samples) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0)
    sweep.cancel()
    await asyncio.gather(sweep, return_exceptions=True)
    assert samples[:3] == [(1_040.0, 30.0), (1_070.0, 30.0), (1_100.0, 30.0)]
