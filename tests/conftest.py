"""What tests of every folder may ask for."""

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from fairwarning.testing import Server
from tests.support.order import long_first
from tests.support.patience import HANG_S

pytest_plugins = ["pytester", "tests.support.postgres"]

# Time fails no test: on a busy machine an example takes as long as it takes.
settings.register_profile(
    "fairwarning", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fairwarning")

# A program that a shell starts in the background ignores Ctrl-C, and so would all that we start.
signal.signal(signal.SIGINT, signal.default_int_handler)

for wait in (Server.wait_until, Server.until):
    defaults = wait.__kwdefaults__
    assert defaults is not None
    defaults["timeout"] = HANG_S

FOLDER = Path(__file__).parent
LONG = (
    "simulation",
    "handler_check",
    "driver_check",
    "operator_api/test_openapi.py",
    "stores/test_model.py",
    "live_check/test_run.py",
    "cli/test_serve_roles.py",
    "cli/test_serve_outages.py",
    "deploy/test_light.py",
)
"""These take as long as hundreds of others, so they begin first; else one worker would still run
one of them when all the others have nothing left to do."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    places = [FOLDER / each for each in LONG]
    long = [each for each in items if any(each.path.is_relative_to(place) for place in places)]
    short = [each for each in items if not any(each.path.is_relative_to(at) for at in places)]
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    items[:] = long_first(long, short, workers)
