"""A node for each test, asked in ARM's way."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.azure_api.arm_client import running_client
from tests.azure_api.scale_set_client import ScaleSetClient


@pytest_asyncio.fixture
async def arm() -> AsyncIterator[ScaleSetClient]:
    async with running_client(ScaleSetClient) as found:
        yield found
