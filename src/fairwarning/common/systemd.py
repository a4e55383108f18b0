"""This module talks to systemd for a service. Without systemd, its functions do nothing.

A service says that it is ready, that it reloads or stops, and that it is alive. It can also leave
its sockets with systemd, which gives them back to the next process after a restart or a crash. So
a connection that comes in between waits in the kernel's queue instead of being refused.
"""

import asyncio
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import quote, unquote

_FIRST_FD = 3
"""The number of the first file descriptor that systemd gives to a process."""


def is_service() -> bool:
    """Return whether systemd listens to this process."""
    return bool(os.environ.get("NOTIFY_SOCKET"))


def notify(**states: str) -> None:
    """Send states to systemd, as in `notify(READY="1")`. Do nothing without systemd."""
    _send(states)


def notify_reloading() -> None:
    # A unit with `Type=notify-reload` takes the message only with the time.
    notify(RELOADING="1", MONOTONIC_USEC=str(time.monotonic_ns() // 1_000))


def leave_socket(name: str, given: socket.socket) -> None:
    """Leave a copy of a socket with systemd. `taken_sockets` of the next process returns it.

    The unit needs `FileDescriptorStoreMax`.
    """
    _send({"FDSTORE": "1", "FDNAME": quote(name)}, given.fileno())


def withdraw_socket(name: str) -> None:
    """Have systemd close its copy of a socket."""
    _send({"FDSTOREREMOVE": "1", "FDNAME": quote(name)})


def taken_sockets() -> dict[str, int]:
    """Return the file descriptors that systemd has given to this process, by name, and forget them.

    A second call returns nothing, and programs that this process starts are not misled.
    """
    given = {name: os.environ.pop(f"LISTEN_{name}", "") for name in ("PID", "FDS", "FDNAMES")}
    if given["PID"] != str(os.getpid()) or not given["FDS"].isdigit():
        return {}
    names = given["FDNAMES"].split(":")
    return {
        unquote(name): _FIRST_FD + number for number, name in enumerate(names[: int(given["FDS"])])
    }


def leave_service() -> None:
    """Keep this process from talking to systemd, because its parent does that."""
    os.environ.pop("NOTIFY_SOCKET", None)


def watchdog_s() -> float | None:
    """Return the time between two pings of the watchdog. It is None if systemd expects none."""
    is_ours = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    value = os.environ.get("WATCHDOG_USEC", "")
    return int(value) / 2_000_000 if is_ours and value.isdigit() and int(value) else None


async def ping_watchdog() -> None:
    """Ping systemd's watchdog. If the event loop hangs, the pings stop and systemd restarts us."""
    every_s = watchdog_s()
    while every_s is not None:
        notify(WATCHDOG="1")
        await asyncio.sleep(every_s)


def _send(states: Mapping[str, str], fd: int | None = None) -> None:
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    path = "\0" + address[1:] if address.startswith("@") else address
    message = "\n".join(f"{name}={value}" for name, value in states.items()).encode()
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
        # The message may be lost, because a service must not wait for systemd to read it.
        sending.setblocking(False)
        sending.connect(path)
        if fd is None:
            sending.send(message)
        else:
            socket.send_fds(sending, [message], [fd])
