"""The pytest plugin. Its fixture `fairwarning` gives each test its own server.

@pytest.mark.fairwarning(fleet="tests/fleet.toml", seed=7)
def test_my_handler(fairwarning): ...
"""

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fairwarning.testing.server import Server


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "fairwarning(fleet=None, seed=0, start=None, port=0, newest_version='', holds_polls=True): "
        "how the fixture `fairwarning` is set up; see fairwarning.testing.server.",
    )


@pytest.fixture
def fairwarning(request: pytest.FixtureRequest) -> Iterator["Server"]:
    """A Fairwarning server for this test alone, with a virtual clock."""
    # The import is here, so that tests without the fixture do not load the server.
    from fairwarning.testing.server import server  # noqa: PLC0415

    marker = request.node.get_closest_marker("fairwarning")
    settings = {} if marker is None else marker.kwargs
    known = inspect.signature(server).parameters
    unknown = [each for each in settings if each not in known]
    if unknown or (marker is not None and marker.args):
        wrong = ", ".join(unknown) or "what has no name"
        pytest.fail(
            f"the marker fairwarning does not take {wrong}; write one of {', '.join(known)} with =",
            pytrace=False,
        )
    with server(**settings) as running:
        yield running
