"""Drivers are found where they are installed, and a bad one is named and harms no other.

A slip in a driver's settings is found when the fleet is read, not when the impact is due.
"""

import logging
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from fairwarning.core.driver_settings import DriverSettings, Setting, driver_problem
from fairwarning.drivers import Alarm, DriverFailed, Found, Lease, Order, plugins
from fairwarning.engine.clocks import SystemClock, VirtualClock
from tests.drivers.orders import HeldLease, order
from tests.drivers.packages import install

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
GOOD = """
from fairwarning.drivers import DriverSettings, Found

class Good:
    SETTINGS = DriverSettings(driver="good")
    def __init__(self, clock): pass
    async def find(self, order): return Found.UNKNOWN
    async def do(self, order, alarm, lease): pass
"""

NAMED_BAD = GOOD.replace("Good", "Bad").replace('"good"', '"bad"')


def test_the_shipped_drivers_are_registered_as_plug_ins_are() -> None:
    said = tomllib.loads(PROJECT.read_text())["project"]["entry-points"][plugins.GROUP]
    assert said == plugins.SHIPPED
    assert list(plugins.load([])) == list(plugins.SHIPPED)


def test_every_driver_declares_its_settings_under_its_name() -> None:
    assert set(plugins.make_all(VirtualClock())) == set(plugins.catalogue())
    assert {name: each.driver for name, each in plugins.catalogue().items()} == {
        name: name for name in plugins.catalogue()
    }


def test_a_plug_in_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = install(tmp_path, monkeypatch, "good_package", GOOD, good="good_package:Good")
    found = plugins.load(points)
    assert found["good"].package == "good-package 1.0"
    assert found["good"].settings.problem({}) is None


BAD = {
    "import": (
        "import nonesuch_module",
        "cannot be imported (ModuleNotFoundError",
    ),
    "syntax": ("class Bad(:", "cannot be imported (SyntaxError"),
    "no class": ("Bad = 3", "bad_package:Bad of bad-package 1.0 is no class"),
    "missing": ("", "cannot be imported (AttributeError"),
    "settings": ("class Bad: pass", "has no SETTINGS"),
    "name": (GOOD.replace("Good", "Bad"), "calls itself 'good' in SETTINGS, and 'bad'"),
    "no do": (
        NAMED_BAD.replace("def do", "def perform"),
        "has no method `async def do(self, order, alarm, lease)`",
    ),
    "not async": (
        GOOD.replace("Good", "Bad")
        .replace('"good"', '"bad"')
        .replace("async def find", "def find"),
        "has no method `async def find(self, order)`",
    ),
    "arguments": (
        NAMED_BAD.replace("alarm, lease", "alarm"),
        "must have the method `async def do(self, order, alarm, lease)`",
    ),
}


@pytest.mark.parametrize("case", BAD)
async def test_a_bad_plug_in_is_named_and_the_others_work(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    text, says = BAD[case]
    points = [
        *install(tmp_path / "a", monkeypatch, "bad_package", text, bad="bad_package:Bad"),
        *install(tmp_path / "b", monkeypatch, "good_package", GOOD, good="good_package:Good"),
    ]
    found = plugins.load(points)
    assert found["bad"].driver is None
    problem = driver_problem({n: each.settings for n, each in found.items()}, "bad", {})
    assert problem is not None
    assert says in problem
    monkeypatch.setattr(plugins, "installed", lambda: found)
    with caplog.at_level(logging.WARNING):
        drivers = plugins.make_all(SystemClock())
    assert [each.exc_info for each in caplog.records] == [None]
    assert says in caplog.text
    with pytest.raises(DriverFailed, match="driver 'bad' cannot be used"):
        await drivers["bad"].find(order({}))
    with pytest.raises(DriverFailed, match="driver 'bad' cannot be used"):
        await drivers["bad"].do(order({}), SystemClock().alarm(), HeldLease())
    assert await drivers["good"].find(order({})) is Found.UNKNOWN


def test_two_packages_with_one_name_get_neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = [
        *install(tmp_path / "a", monkeypatch, "one_package", GOOD, good="one_package:Good"),
        *install(tmp_path / "b", monkeypatch, "two_package", GOOD, good="two_package:Good"),
    ]
    unusable = plugins.load(points)["good"].settings.unusable
    assert unusable == "one-package 1.0 and two-package 1.0 both have it; uninstall one of them"


def test_a_shipped_driver_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    points = install(tmp_path, monkeypatch, "other", GOOD, command="other:Good")
    assert plugins.load(points)["command"] == plugins.load([])["command"]
    assert "the driver 'command' of other 1.0 is not used" in caplog.text


class Unmakeable:
    SETTINGS = DriverSettings(driver="unmakeable")

    def __init__(self, clock: object) -> None:
        raise RuntimeError("no licence")

    async def find(self, order: Order) -> Found:
        raise NotImplementedError

    async def do(self, order: Order, alarm: Alarm, lease: Lease) -> None:
        raise NotImplementedError


async def test_a_driver_that_cannot_be_made_fails_its_impacts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = plugins.load([EntryPoint("unmakeable", f"{__name__}:Unmakeable", plugins.GROUP)])
    monkeypatch.setattr(plugins, "installed", lambda: found)
    with pytest.raises(DriverFailed, match="cannot be made: RuntimeError: no licence"):
        await plugins.make_all(SystemClock())["unmakeable"].find(order({}))


def test_a_text_that_does_not_match_its_pattern_is_shown_an_example() -> None:
    uri = Setting(name="uri", pattern="[a-z]+:///.*", example="qemu:///system")
    settings = DriverSettings(driver="x", settings=(uri,))
    assert settings.problem({"uri": "test:///default"}) is None
    said = settings.problem({"uri": "hunter2"})
    assert said == "driver 'x': 'uri' is not written as it must be; write it like 'qemu:///system'"


@pytest.mark.parametrize(
    ("driver", "settings"),
    [
        ("simulated", {}),
        ("command", {"run": "virsh-impact --uri 'qemu:///system'", "timeout": "10m"}),
        ("webhook", {"url": "https://u:p@example.com:8443/x?y", "secret_env": "FW_KEY"}),
    ],
)
def test_settings_that_are_fine(driver: str, settings: dict[str, str]) -> None:
    assert driver_problem(plugins.catalogue(), driver, settings) is None


@pytest.mark.parametrize(
    ("driver", "settings", "says"),
    [
        ("xen", {}, "no driver is called 'xen'; use one of simulated, command, webhook"),
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
    problem = driver_problem(plugins.catalogue(), driver, settings)
    assert problem is not None
    assert says in problem
    assert "hunter2" not in problem
