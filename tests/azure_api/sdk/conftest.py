"""A fresh server and the SDK for each test; a certificate once a run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.azure_api.sdk.sdk_clients import GROUP, LOCATION, SdkClients, running_sdk


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture
def azure(certificates: Path) -> Iterator[SdkClients]:
    """With a resource group to work in."""
    with running_sdk(certificates) as made:
        made.resources.resource_groups.create_or_update(GROUP, {"location": LOCATION})
        yield made
