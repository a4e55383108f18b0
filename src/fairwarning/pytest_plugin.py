"""The pytest plugin: the fixture `fairwarning`, a server for each test that asks for one.

@pytest.mark.fairwarning(fleet="tests/fleet.toml", seed=7)
def test_my_handler(fairwarning): ...
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fairwarning.testing.server import Server


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "fairwarning(fleet=None, seed=0, start=None): the fleet, the seed and the first instant "
        "of the fixture `fairwarning`.",
    )


@pytest.fixture
def fairwarning(request: pytest.FixtureRequest) -> Iterator["Server"]:
    """A whole Fairwarning server of this test's own, with a virtual clock."""
    # Here and not above: whoever does not use the fixture does not pay for the server.
    from fairwarning.testing.server import server  # noqa: PLC0415

    marker = request.node.get_closest_marker("fairwarning")
    settings = {} if marker is None else marker.kwargs
    with server(**settings) as running:
        yield running
