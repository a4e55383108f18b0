"""Stands for systemd on a bus that has none: it notes what logind would start, and refuses it.

Arguments: the file that the drain writes, and the file to which that is copied at each start.
"""

import asyncio
import sys
from pathlib import Path

from dbus_fast import BusType, DBusError, ErrorType, PropertyAccess
from dbus_fast.aio import MessageBus
from dbus_fast.annotations import DBusObjectPath, DBusStr
from dbus_fast.service import ServiceInterface, dbus_method, dbus_property

_NAME = "org.freedesktop.systemd1"
_PATH = "/org/freedesktop/systemd1"


class Manager(ServiceInterface):
    def __init__(self, drained: Path, started: Path) -> None:
        super().__init__(f"{_NAME}.Manager")
        self._drained, self._started = drained, started

    @dbus_method()
    def StartUnit(self, name: DBusStr, mode: DBusStr) -> DBusObjectPath:  # noqa: N802
        seen = self._drained.read_text() if self._drained.exists() else ""
        self._started.write_text(f"{name}: {seen}")
        raise DBusError(ErrorType.ACCESS_DENIED, "here nothing is ever shut down")


class Target(ServiceInterface):
    @dbus_property(PropertyAccess.READ)
    def LoadState(self) -> DBusStr:  # noqa: N802
        return "loaded"


async def main(drained: Path, started: Path) -> None:
    bus = await MessageBus(bus_type=BusType.SYSTEM).connect()
    bus.export(_PATH, Manager(drained, started))
    bus.export(f"{_PATH}/unit/reboot_2etarget", Target(f"{_NAME}.Unit"))
    await bus.request_name(_NAME)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*(Path(each) for each in sys.argv[1:])))
