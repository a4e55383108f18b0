"""Tells systemd how the service is, if it was systemd that started it."""

import os
import socket
from contextlib import suppress


def notify(**states: str) -> None:
    """`notify(READY="1", STATUS="watching")`."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    path = "\0" + address[1:] if address.startswith("@") else address
    message = "\n".join(f"{name}={value}" for name, value in states.items())
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
        # A message may be lost, but nothing here may wait for whoever should read it.
        sending.setblocking(False)
        sending.sendto(message.encode(), path)


def watchdog_s() -> float | None:
    """How often systemd wants to hear of us; None: never."""
    is_ours = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    value = os.environ.get("WATCHDOG_USEC", "")
    return int(value) / 2_000_000 if is_ours and value.isdigit() and int(value) else None
