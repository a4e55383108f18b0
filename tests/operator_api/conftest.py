"""A node for each test."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.operator_api.rig import Rig, running


@pytest_asyncio.fixture
async def rig() -> AsyncIterator[Rig]:
    async with running() as found:
        yield found
