"""This module finds the drivers that are installed, and says clearly why one cannot be used.

A driver is found by an entry point of the group `fairwarning.drivers`. The drivers of this package
are registered in the same way. They are also known without their entry points, because a source
tree or a zip file has none. A driver that cannot be loaded does not keep the others from working.
"""

import inspect
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from fairwarning.core.driver_settings import DriverCatalogue, DriverSettings
from fairwarning.drivers import Alarm, Clock, Driver, DriverFailed, Found, Lease, Order
from fairwarning.engine import protocols

GROUP = "fairwarning.drivers"
SHIPPED: Mapping[str, str] = {
    "simulated": "fairwarning.drivers.simulated:SimulatedDriver",
    "command": "fairwarning.drivers.command:CommandDriver",
    "webhook": "fairwarning.drivers.webhook:WebhookDriver",
    "libvirt": "fairwarning.drivers.libvirt.driver:LibvirtDriver",
}
"""The drivers of this package, as in pyproject.toml."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A driver that is installed."""

    settings: DriverSettings
    package: str
    """The name and version of the package that it came with."""
    driver: type[Driver] | None
    """The class, or None if it cannot be loaded. Then `settings.unusable` says why."""


class UnusableDriver:
    """Replaces a driver that cannot be made, and fails every impact with the reason."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    async def find(self, order: Order) -> Found:
        raise DriverFailed(self._reason)

    async def do(self, order: Order, alarm: Alarm, lease: Lease) -> None:
        raise DriverFailed(self._reason)


@cache
def installed() -> Mapping[str, Plugin]:
    """Return the drivers that are installed, by name. Those of this package come first."""
    return load(entry_points(group=GROUP))


def catalogue() -> DriverCatalogue:
    """Return the settings of every driver, so that a fleet can be checked against them."""
    return {name: each.settings for name, each in installed().items()}


def make_all(clock: Clock) -> protocols.Drivers:
    """Return an object of each installed driver, by its name."""
    return {name: _make(each, clock) for name, each in installed().items()}


def load(points: Iterable[EntryPoint]) -> dict[str, Plugin]:
    """Return the driver of each entry point. If two packages have a driver of the same name,
    neither can be used, because nobody can tell which should act on instances.
    """
    shipped = {name: EntryPoint(name, value, GROUP) for name, value in SHIPPED.items()}
    found = {name: [point] for name, point in shipped.items()}
    for point in sorted(points, key=lambda each: (each.name, each.value)):
        same = found.setdefault(point.name, [])
        if any(each.value == point.value for each in same):
            continue
        if point.name in shipped:
            _log.warning(
                "the driver %r of %s is not used, because Fairwarning has one of that name; "
                "its author must call it otherwise",
                point.name,
                _package(point),
            )
            continue
        same.append(point)
    return {name: _load(name, same) for name, same in found.items()}


def _load(name: str, points: list[EntryPoint]) -> Plugin:
    packages = " and ".join(_package(each) for each in points)
    if len(points) > 1:
        return _unusable(name, packages, f"{packages} both have it; uninstall one of them")
    try:
        driver = points[0].load()
    except Exception as error:
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return _unusable(name, packages, f"{packages} cannot be imported ({what})")
    wrong = shape_problem(name, driver)
    if wrong is not None:
        return _unusable(name, packages, f"{points[0].value} of {packages} {wrong}")
    return Plugin(settings=driver.SETTINGS, package=packages, driver=driver)


def shape_problem(name: str, driver: object) -> str | None:
    """Return what keeps this object from being the class of the driver `name`, or None."""
    if not inspect.isclass(driver):
        return "is no class; register the class of the driver"
    settings = getattr(driver, "SETTINGS", None)
    if not isinstance(settings, DriverSettings):
        return "has no SETTINGS; add SETTINGS = DriverSettings(driver=…)"
    if settings.driver != name:
        return f"calls itself {settings.driver!r} in SETTINGS, and {name!r} in its entry point"
    for method, arguments in (("find", ("order",)), ("do", ("order", "alarm", "lease"))):
        signature = f"async def {method}(self, {', '.join(arguments)})"
        function = getattr(driver, method, None)
        if not inspect.iscoroutinefunction(function):
            return f"has no method `{signature}`"
        try:
            inspect.signature(function).bind(None, *arguments)
        except TypeError:
            return f"must have the method `{signature}`, with these arguments"
    return None


def _make(plugin: Plugin, clock: Clock) -> protocols.Driver:
    name = plugin.settings.driver
    if plugin.driver is None:
        _log.warning("driver %r cannot be used: %s", name, plugin.settings.unusable)
        return UnusableDriver(f"driver {name!r} cannot be used: {plugin.settings.unusable}")
    try:
        return plugin.driver(clock)
    except Exception as error:
        _log.exception("driver %r of %s cannot be made", name, plugin.package)
        return UnusableDriver(f"driver {name!r} cannot be made: {type(error).__name__}: {error}")


def _unusable(name: str, package: str, why: str) -> Plugin:
    return Plugin(settings=DriverSettings(driver=name, unusable=why), package=package, driver=None)


def _package(point: EntryPoint) -> str:
    if point.dist is None:
        return "fairwarning" if point.value.startswith("fairwarning.") else point.value
    return f"{point.dist.name} {point.dist.version}"
