"""The bodies of all requests together have a limit."""

import asyncio
from urllib.parse import urlsplit

import pytest

from fairwarning.operator_api import (
    body_memory,
)
from tests.operator_api.rig import Rig
from tests.support.patience import HANG_S

TOML = {"Content-Type": "application/toml"}


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
