"""`fairwarning network` prints firewall rules and DHCP options for a network file, and runs the
proxy for networks whose addresses overlap.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from fairwarning.cli.common_options import Session, connected
from fairwarning.cli.output import echo_json
from fairwarning.common.command_errors import Problem, bad_file
from fairwarning.common.text_files import read_text
from fairwarning.common.toml_table import BadFile
from fairwarning.network.network_file import NetworkFile, read_file, with_fleet_addresses

if TYPE_CHECKING:
    from fairwarning.network.proxy import Proxy

_log = logging.getLogger(__name__)
_file_argument = click.argument("file", type=click.Path())
_network_option = click.option(
    "--network", "only", metavar="NAME", help="Print only the part for this network of the file."
)


@click.group(
    epilog="""\b
Examples:
  fairwarning network rules network.toml | nft -f -
  fairwarning network dnsmasq network.toml > /etc/dnsmasq.d/fairwarning.conf
  fairwarning network proxy network.toml
"""
)
def network() -> None:
    """Connect instances to the metadata endpoint, so that none can pretend to be another.

    FILE is a network file: it says at which port each instance is plugged in, and which addresses
    are its own. docs/network.md has whole examples.
    """


@network.command(
    epilog="""\b
Examples:
  fairwarning network rules network.toml | nft -f -
  fairwarning network rules network.toml --network tenant-a | ip netns exec tenant-a nft -f -
"""
)
@_file_argument
@_network_option
@connected
def rules(session: Session, file: str, only: str | None) -> None:
    """Print nftables rules that drop what an instance sends under another's address.

    Loading them replaces the rules of an earlier run in one step. If an instance has no addresses
    in FILE, the server is asked for those in the fleet.
    """
    from fairwarning.network.nftables import (  # noqa: PLC0415  only this command needs it
        RulesIncomplete,
        nftables_rules,
    )

    try:
        text = nftables_rules(_with_addresses(session, _read(file, only)))
    except RulesIncomplete as problem:
        raise Problem(str(problem), place=file) from None
    _print(session, "rules", text)


@network.command(
    epilog="""\b
Examples:
  fairwarning network dnsmasq network.toml > /etc/dnsmasq.d/fairwarning.conf
"""
)
@_file_argument
@_network_option
@connected
def dnsmasq(session: Session, file: str, only: str | None) -> None:
    """Print a part of a dnsmasq configuration: leases, the route to the endpoint, option 245.

    If an instance has no addresses in FILE, the server is asked for those in the fleet.
    """
    from fairwarning.network.dnsmasq import dnsmasq_lines  # noqa: PLC0415

    lines = dnsmasq_lines(_with_addresses(session, _read(file, only)))
    _print(session, "configuration", "\n".join([*lines, ""]))


@network.command(
    epilog="""\b
Examples:
  fairwarning network proxy network.toml
  fairwarning network proxy network.toml --secret-file proxy-secret
"""
)
@_file_argument
@click.option(
    "--secret-file",
    metavar="FILE",
    help="File that holds the secret of `fairwarning serve --proxy` (default: the secret in "
    "FAIRWARNING_PROXY_SECRET).",
)
@click.option(
    "--log-format",
    type=click.Choice(["human", "json"]),
    default="human",
    show_default=True,
    help="Format of the log on standard error.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="When the proxy is ready, print as JSON what it serves."
)
def proxy(file: str, secret_file: str | None, log_format: str, as_json: bool) -> None:
    """Serve the metadata endpoint in the network namespace of each network, until Ctrl-C.

    The proxy tells the server which instance asks. Start the server with `--proxy ADDRESS` and the
    same secret. After a change of FILE, send SIGHUP to the proxy. Listening in another namespace
    needs root.
    """
    from fairwarning import logs  # noqa: PLC0415  help must not wait for these
    from fairwarning.network.proxy import Proxy, ProxyError  # noqa: PLC0415

    found, secret = _read(file), _secret(secret_file)
    for each in found.networks:
        for guest in each.guests:
            if not guest.addresses:
                raise Problem(
                    f"guest {guest.instance} of network {each.name} has no addresses; the proxy "
                    "knows a guest by them, so add them",
                    place=file,
                )
    logs.set_up(log_format, "info")
    names = [each.name for each in found.networks]

    def ready() -> None:
        if as_json:
            echo_json({"server": found.server, "networks": names})
        else:
            click.echo(f"ready: serves {', '.join(names)}; Ctrl-C ends it")

    try:
        asyncio.run(_serve(Proxy(found, secret), file, ready))
    except ProxyError as problem:
        raise Problem(str(problem)) from None


async def _serve(proxy: "Proxy", file: str, ready: Callable[[], None]) -> None:
    stopped, changed = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    loop.add_signal_handler(signal.SIGHUP, changed.set)
    await proxy.start()
    ready()
    reloads = asyncio.create_task(_reload_on(changed, proxy, file))
    try:
        await stopped.wait()
    finally:
        reloads.cancel()
        await proxy.stop()


async def _reload_on(changed: asyncio.Event, proxy: "Proxy", file: str) -> None:
    from fairwarning.network.proxy import ProxyError  # noqa: PLC0415

    while True:
        await changed.wait()
        changed.clear()
        try:
            await proxy.reload(_read(file))
            _log.info("%s was read again", file)
        except (Problem, click.UsageError, ProxyError) as problem:
            _log.error("%s was read again, but the old one stays in use: %s", file, problem)


def _read(file: str, only: str | None = None) -> NetworkFile:
    try:
        found = read_file(file)
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from None
    except BadFile as bad:
        raise bad_file(file, bad.mistakes) from None
    if only is None:
        return found
    chosen = tuple(each for each in found.networks if each.name == only)
    if not chosen:
        names = ", ".join(each.name for each in found.networks)
        raise click.UsageError(f"{file} has no network {only!r}; it has {names}")
    return replace(found, networks=chosen)


def _with_addresses(session: Session, file: NetworkFile) -> NetworkFile:
    lacking = {
        guest.instance for each in file.networks for guest in each.guests if not guest.addresses
    }
    known = {
        name: tuple(session.api.get("instances", name).get("addresses") or ())
        for name in sorted(lacking)
    }
    return with_fleet_addresses(file, known)


def _secret(file: str | None) -> str:
    if file is None:
        secret, place = os.environ.get("FAIRWARNING_PROXY_SECRET", ""), "FAIRWARNING_PROXY_SECRET"
    else:
        try:
            secret, place = read_text(file).strip(), file
        except OSError as error:
            raise click.UsageError(f"{file} cannot be read: {error.strerror}") from None
    if not secret:
        raise click.UsageError(f"{place} holds no secret; it is the one of `serve --proxy`")
    return secret


def _print(session: Session, key: str, text: str) -> None:
    if session.as_json:
        echo_json({key: text})
    else:
        click.echo(text, nl=False)
