"""Talks to systemd-logind on the system's D-Bus: delay locks, and news of shutdowns.

It needs dbus-fast, so it is imported only where `[host_shutdown]` asks for it.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from dbus_fast import BusType, DBusError, Message, MessageType
from dbus_fast.aio import MessageBus
from dbus_fast.errors import AuthError, InvalidAddressError

from fairwarning.agent.actions.base import reason
from fairwarning.agent.host_shutdown import NoLogind

ASK_S_MAX = 5.0
_NAME = "org.freedesktop.login1"
_PATH = "/org/freedesktop/login1"
_MANAGER = "org.freedesktop.login1.Manager"
_SIGNAL = "PrepareForShutdown"
_MATCH = f"type='signal',sender='{_NAME}',path='{_PATH}',member='{_SIGNAL}'"


class Logind:
    """A connection to logind. Every method raises NoLogind if there is no usable answer."""

    def __init__(self, bus: MessageBus) -> None:
        self._bus = bus

    @classmethod
    async def connect(cls, on_signal: Callable[[], None] = lambda: None) -> "Logind":
        """Connect to the system's bus. `on_signal` is called when a shutdown begins or is called
        off; `is_shutting_down` says which.
        """
        try:
            bus = MessageBus(bus_type=BusType.SYSTEM, negotiate_unix_fd=True)
            async with asyncio.timeout(ASK_S_MAX):
                await bus.connect()
        except TimeoutError:
            raise NoLogind("the system's bus does not answer") from None
        except (OSError, EOFError) as problem:
            why = reason(problem) if isinstance(problem, OSError) else "it hung up"
            raise NoLogind(f"the system's bus cannot be reached: {why}") from None
        except (AuthError, InvalidAddressError) as problem:
            raise NoLogind(f"the system's bus does not let us in: {problem}") from None
        logind = cls(bus)

        def look(message: Message) -> None:
            if message.message_type is MessageType.SIGNAL and message.member == _SIGNAL:
                on_signal()

        bus.add_message_handler(look)
        try:
            await logind._call("org.freedesktop.DBus", "/org/freedesktop/DBus",
                               "org.freedesktop.DBus", "AddMatch", "s", _MATCH)  # fmt: skip
        except NoLogind:
            logind.close()
            raise
        return logind

    async def inhibit(self, why: str) -> int:
        """Take a delay lock for shutdowns, and return its file. Closing the file releases it."""
        said = ("shutdown", "Fairwarning agent", why, "delay")
        reply = await self._call(_NAME, _PATH, _MANAGER, "Inhibit", "ssss", *said)
        file: int = reply.unix_fds[reply.body[0]]
        return file

    async def delay_max_s(self) -> float:
        """Return how long logind lets a shutdown wait for delay locks (InhibitDelayMaxSec)."""
        return float(await self._property("InhibitDelayMaxUSec")) / 1_000_000

    async def is_shutting_down(self) -> bool:
        return bool(await self._property("PreparingForShutdown"))

    async def wait_closed(self) -> None:
        """Wait until the connection is lost."""
        try:
            await self._bus.wait_for_disconnect()  # type: ignore[no-untyped-call]
        except (OSError, EOFError):
            return

    def close(self) -> None:
        self._bus.disconnect()

    async def _property(self, name: str) -> Any:
        interface = "org.freedesktop.DBus.Properties"
        reply = await self._call(_NAME, _PATH, interface, "Get", "ss", _MANAGER, name)
        return reply.body[0].value

    async def _call(
        self, name: str, path: str, interface: str, member: str, signature: str, *body: str
    ) -> Message:
        call = Message(
            destination=name, path=path, interface=interface, member=member, signature=signature,
            body=list(body),
        )  # fmt: skip
        try:
            async with asyncio.timeout(ASK_S_MAX):
                reply = await self._bus.call(call)
        except TimeoutError:
            raise NoLogind("systemd-logind does not answer") from None
        except (OSError, EOFError, DBusError) as problem:
            raise NoLogind(f"the system's bus is gone: {problem}") from None
        if reply is None:
            raise NoLogind("the system's bus is gone")
        if reply.message_type is MessageType.ERROR:
            raise NoLogind(_refusal(reply))
        return reply


def _refusal(reply: Message) -> str:
    name = (reply.error_name or "").rpartition(".")[2]
    said = str(reply.body[0]) if reply.body else name
    if name in ("ServiceUnknown", "NameHasNoOwner"):
        return "systemd-logind does not run here"
    if name in ("AccessDenied", "InteractiveAuthorizationRequired"):
        return f"logind does not let this user delay a shutdown ({said}); see deploy/README.md"
    return f"logind refuses: {said}"
