"""A slip in a driver's settings is found when the fleet is read, not when the impact is due."""

import pytest

from fairwarning.boot import make_drivers
from fairwarning.core.driver_settings import driver_problem
from fairwarning.drivers import DRIVER_CATALOGUE
from fairwarning.engine.clocks import VirtualClock


def test_every_driver_declares_its_settings_under_its_name() -> None:
    assert set(make_drivers(VirtualClock())) == set(DRIVER_CATALOGUE)


@pytest.mark.parametrize(
    ("driver", "settings"),
    [
        ("simulated", {}),
        ("command", {"run": "virsh-impact --uri 'qemu:///system'", "timeout": "10m"}),
        ("webhook", {"url": "https://u:p@example.com:8443/x?y", "secret_env": "FW_KEY"}),
    ],
)
def test_settings_that_are_fine(driver: str, settings: dict[str, str]) -> None:
    assert driver_problem(DRIVER_CATALOGUE, driver, settings) is None


@pytest.mark.parametrize(
    ("driver", "settings", "says"),
    [
        ("libvirt", {}, "no driver is called 'libvirt'; use one of simulated, command, webhook"),
        ("simulated", {"run": "x"}, "no setting 'run'; it has none"),
        ("command", {}, "needs 'run'"),
        ("command", {"run": "x", "rnu": "y"}, "no setting 'rnu'; it knows run, timeout"),
        ("command", {"run": "it's"}, "quotes closed"),
        ("command", {"run": "  "}, "no command line"),
        ("command", {"run": "x", "timeout": "0s"}, "'timeout' is no duration"),
        ("webhook", {"secret_env": "K"}, "needs 'url'"),
        ("webhook", {"url": "hunter2"}, "http:// or https://"),
        ("webhook", {"url": "http://x", "secret_env": "whsec_hunter2+"}, "name of an environment"),
    ],
)
def test_settings_with_a_slip(driver: str, settings: dict[str, str], says: str) -> None:
    problem = driver_problem(DRIVER_CATALOGUE, driver, settings)
    assert problem is not None
    assert says in problem
    assert "hunter2" not in problem
