"""Waiting by the service's clock, whatever becomes of it."""

import asyncio
from datetime import timedelta

from fairwarning.agent.clock import Clock
from tests.agent.values import NOW
from tests.support.patience import HANG_S


async def test_a_clock_that_is_set_back_prolongs_no_timeout() -> None:
    reads = iter([NOW])
    clock = Clock(lambda: next(reads, NOW - timedelta(hours=1)))
    async with asyncio.timeout(HANG_S):
        await clock.sleep(0.05)
