"""A node for each test."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.control.rig import Rig, running


@pytest_asyncio.fixture
async def rig() -> AsyncIterator[Rig]:
    async with running() as found:
        yield found
