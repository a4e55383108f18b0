"""A node for each test, asked in ARM's way."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.azure_api.scale_set_rig import Arm, arm_running


@pytest_asyncio.fixture
async def arm() -> AsyncIterator[Arm]:
    async with arm_running() as found:
        yield found
