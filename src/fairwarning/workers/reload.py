"""Loads the program anew in the same process, and hands over its sockets and its children.

A start by systemd after a restart or a crash takes over sockets too, but no children.
The new program reads its options and its configuration again. Whether it can do so is tried first
in another process, so that a mistake in the configuration does not end the service.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from msgspec import Struct, convert, to_builtins

from fairwarning.common.systemd import taken_sockets, withdraw_socket

HANDED_OVER = "FAIRWARNING_HANDED_OVER"
"""The environment variable that tells the new program what it takes over, as JSON."""
TRIAL = "trial"
"""The value of the variable for a program that only reads its options, and then ends."""


class HandedOver(Struct, kw_only=True):
    """What a new program takes over from the old one."""

    sockets: dict[str, int] = {}
    """The file descriptor of each open socket, by what it is for."""
    folder: str = ""
    """The folder with the Unix socket of the engine's process."""
    pids: dict[str, int] = {}
    """The process id of each child, by its name."""
    retired: list[int] = []
    """The processes that are ending already."""
    life: tuple[int, int] | None = None
    """The pipe of life. The old children end when nobody has it open for writing."""

    def socket(self, key: str, make: Callable[[], socket.socket]) -> socket.socket:
        """Return the socket that was handed over under this key, or a new one."""
        fd = self.sockets.pop(key, None)
        return make() if fd is None else socket.socket(fileno=fd)

    def close_rest(self) -> None:
        """Close the sockets that nobody has taken, such as those of a worker too many."""
        for key, fd in self.sockets.items():
            os.close(fd)
            withdraw_socket(key)
        self.sockets = {}


def is_trial() -> bool:
    """Return whether this process is only to read its options."""
    return os.environ.get(HANDED_OVER) == TRIAL


def take_over() -> HandedOver:
    """Return what the old program has handed over. It is empty at an ordinary start."""
    given = os.environ.pop(HANDED_OVER, "")
    kept = taken_sockets()
    handed = convert(json.loads(given), HandedOver) if given else HandedOver(sockets=kept)
    # Programs that a driver starts must not have them.
    for fd in (*handed.sockets.values(), *(handed.life or ())):
        os.set_inheritable(fd, False)
    return handed


def start_trial() -> subprocess.Popen[str]:
    """Start the program with the same options, to see whether it can read them. It ends soon."""
    return subprocess.Popen(  # noqa: S603, the command of this very process
        _command(),
        env={**os.environ, HANDED_OVER: TRIAL},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def load_anew(
    sockets: Mapping[str, socket.socket],
    folder: str,
    life: tuple[int, int],
    pids: Mapping[str, int],
    retired: Sequence[int],
) -> NoReturn:
    """Replace the program of this process by a new one. Block all signals before."""
    for fd in (*life, *(each.fileno() for each in sockets.values())):
        os.set_inheritable(fd, True)
    handed = HandedOver(
        sockets={key: each.fileno() for key, each in sockets.items()},
        folder=folder,
        pids=dict(pids),
        retired=list(retired),
        life=life,
    )
    command = _command()
    environment = {**os.environ, HANDED_OVER: json.dumps(to_builtins(handed))}
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(command[0], command, environment)  # noqa: S606, the same program


def _command() -> list[str]:
    return [sys.executable, *sys.orig_argv[1:]]
