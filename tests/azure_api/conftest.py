"""A node for each test, asked in ARM's way or by clients that log in."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.azure_api.arm_client import running_client
from tests.azure_api.login_client import LoginClient, running_login_client
from tests.azure_api.scale_set_client import ScaleSetClient


@pytest_asyncio.fixture
async def arm() -> AsyncIterator[ScaleSetClient]:
    async with running_client(ScaleSetClient) as found:
        yield found


@pytest.fixture(scope="session")
def tls_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest_asyncio.fixture
async def azure(tls_folder: Path) -> AsyncIterator[LoginClient]:
    async with running_login_client(tls_folder) as found:
        yield found
