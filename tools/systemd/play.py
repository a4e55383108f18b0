"""Plays the checks, each on a machine of its own; each part begins where the one before ended."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from tools.systemd.context import BROUGHT, Context
from tools.systemd.failures import hang, kill_while_drained, reload, stop
from tools.systemd.files import pack_client, pack_server
from tools.systemd.image import ensure_image
from tools.systemd.journal import read_as_json
from tools.systemd.machine import Machine, powered
from tools.systemd.reboots import (
    reboot_as_root,
    reboot_with_polkit,
    refuse_without_rights,
    shut_down_by_itself,
)
from tools.systemd.server import Server, vm_server
from tools.systemd.server_service import SERVER, SERVER_PARTS
from tools.systemd.start import look_at_rights, start_before_the_server

_PARTS = (
    look_at_rights,
    kill_while_drained,
    hang,
    reload,
    refuse_without_rights,
    reboot_with_polkit,
    shut_down_by_itself,
    reboot_as_root,
    read_as_json,
    stop,
)


def play_agent() -> Iterator[str]:
    """Yields a line for each thing that was checked of the agent. Raises AssertionError."""
    with ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="fairwarning-vm-")))
        address = folder / "address"
        machine = ending.enter_context(
            powered(ensure_image(), pack_client(folder), address, folder)
        )
        yield _boot(machine, "install.sh")
        yield "the client was installed as deploy/README.md says"
        servers: list[Server] = []

        def serve() -> Server:
            servers.append(ending.enter_context(vm_server(folder, address)))
            return servers[0]

        yield from start_before_the_server(machine, serve)
        context = Context(machine=machine, server=servers[0])
        for part in _PARTS:
            yield from part(context)


def play_server() -> Iterator[str]:
    """Yields a line for each thing that was checked of the server. Raises AssertionError."""
    with ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="fairwarning-vm-")))
        nowhere = folder / "address"
        machine = ending.enter_context(
            powered(ensure_image(), pack_server(folder), nowhere, folder)
        )
        yield _boot(machine, "install-server.sh")
        try:
            for part in SERVER_PARTS:
                yield from part(machine.guest)
        except AssertionError as failure:
            log = "\n".join(machine.guest.log_of(SERVER)[-20:])
            raise AssertionError(f"{failure}; its log ends with:\n{log}") from None


def _boot(machine: Machine, install: str) -> str:
    booted_s = machine.wait_until_up()
    release = machine.guest.must("systemctl --version").split("\n")[0]
    machine.guest.must(
        f"mkdir {BROUGHT} && tar -xf /dev/vdb -C {BROUGHT} && sh {BROUGHT}/guest/{install}"
    )
    return f"a machine booted in {booted_s:.0f} s: {release}"


PLAYS: dict[str, Callable[[], Iterator[str]]] = {"agent": play_agent, "server": play_server}
