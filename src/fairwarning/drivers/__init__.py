"""Drivers really freeze, reboot, redeploy, stop or delete an instance.

Everything that the author of a driver needs can be imported from here. A driver is a class that is
registered under the entry point group `fairwarning.drivers`; docs/write-a-driver.md shows one.
"""

from typing import ClassVar, Protocol

from fairwarning.core.driver_settings import DriverSettings, Setting, SettingKind
from fairwarning.core.model import EventType, EvictionPolicy, Instance, OperationKind, Power
from fairwarning.drivers.check_target import CheckTarget
from fairwarning.drivers.impact_records import KeyFiles, KeyRecord
from fairwarning.drivers.orders import handle_of
from fairwarning.engine import protocols
from fairwarning.engine.protocols import Alarm, Clock, DriverFailed, Found, Lease, LeaseLost, Order


class Driver(protocols.Driver, Protocol):
    """The shape of a driver's class. It need not be inherited from.

    The server makes one object of it, and calls `find` and `do` for many orders at the same time.
    """

    SETTINGS: ClassVar[DriverSettings]
    """The driver's name, and the settings that a fleet may give it."""

    def __init__(self, clock: Clock) -> None:
        """The clock is the server's own. It may be virtual, so don't take the time elsewhere."""


__all__ = [
    "Alarm",
    "CheckTarget",
    "Clock",
    "Driver",
    "DriverFailed",
    "DriverSettings",
    "EvictionPolicy",
    "EventType",
    "Found",
    "Instance",
    "KeyFiles",
    "KeyRecord",
    "Lease",
    "LeaseLost",
    "OperationKind",
    "Order",
    "Power",
    "Setting",
    "SettingKind",
    "handle_of",
]
