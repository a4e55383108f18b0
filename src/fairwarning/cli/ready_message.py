"""What `fairwarning serve` prints when the server is ready, for people and for programs."""

import json
import os
from urllib.parse import urlsplit

import click
from msgspec import Struct

from fairwarning import __version__
from fairwarning.cli.common_options import DEFAULT_URL
from fairwarning.common.store_urls import is_postgres
from fairwarning.common.systemd import notify
from fairwarning.common.url_redaction import redacted
from fairwarning.core.resources import expand
from fairwarning.metadata.identity import is_loopback
from fairwarning.starter_fleet import STARTER_FLEET

_KEPT_VIRTUAL = (
    "warning: the clock is virtual and the store is kept, so its history will have times that the "
    "real clock has not reached; use --store memory: to rehearse"
)


class Started(Struct, frozen=True, kw_only=True):
    """What people and programs are told about a server that is ready."""

    metadata_urls: list[str]
    control_url: str
    azure_url: str
    azure_trouble: str
    has_starter_fleet: bool
    has_control: bool = True
    """Whether the node has the role control, and so the portal."""
    poll: str | None
    """The path of a poll of any instance, or None if the fleet is empty."""
    clock_speed: float | None
    """How much faster a virtual clock runs than the real one. None without a virtual clock."""


def shown_store(store_url: str) -> str:
    """Return the URL of the store without user, password and parameters."""
    if not is_postgres(store_url):
        return store_url.removeprefix("sqlite:///")
    try:
        parts = urlsplit(store_url)
    except ValueError:
        parts = urlsplit("")
    if not parts.scheme:
        return redacted("postgresql://")
    # There may be several hosts, each with a port.
    return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _program(control_url: str) -> str:
    """Return the shell words that call this program as a client of this server."""
    name = os.environ.get("FAIRWARNING_PROGRAM", "fairwarning")
    return name if control_url == DEFAULT_URL else f"FAIRWARNING_URL={control_url} {name}"


def tell_ready(node: Started, store_url: str, *, as_json: bool) -> None:
    """Tell whoever started the server that it is ready: a person, a program or systemd."""
    notify(READY="1", STATUS=f"ready {' '.join(node.metadata_urls)} control {node.control_url}")
    urls, program, poll = node.metadata_urls, _program(node.control_url), node.poll
    speed = node.clock_speed
    if speed is not None and store_url != "memory:":
        click.echo(_KEPT_VIRTUAL, err=True)
    if node.azure_trouble:
        click.echo(f"Azure's clients are not listened to: {node.azure_trouble}", err=True)
    if as_json:
        azure = node.azure_url or None
        ready = {"ready": True, "metadata": urls, "control": node.control_url, "azure": azure}
        click.echo(json.dumps(ready))
        return
    click.echo(f"Fairwarning {__version__}, store {shown_store(store_url)}")
    if node.has_starter_fleet:
        scopes = (scope for each in STARTER_FLEET for scope in expand(each))
        names = ", ".join(name for scope in scopes for name in scope.roster.instances)
        click.echo("The store was empty, so it got a starter fleet to rehearse with (--empty for")
        click.echo(f"none): {names}.")
    if not urls:
        click.echo("Instances ask other nodes, because this one has not the role metadata.")
    elif poll is None:
        click.echo("The fleet is empty, so nobody can ask. Declare one from another terminal:")
        click.echo(f"  {program} fleet apply FILE")
    elif is_loopback(urlsplit(urls[0]).hostname or ""):
        click.echo("Ask as one of its machines, from another terminal:")
        click.echo(f"  curl -H Metadata:true '{urls[0]}{poll}'")
        click.echo("Announce something to it, and look on:")
        click.echo(f"  {program} schedule Reboot {poll.split('/')[2]}")
        click.echo(f"  {program} watch")
    elif node.has_starter_fleet:
        click.echo("None of its machines has an address, so nobody is known on this listener; it")
        click.echo("can be asked on a loopback address.")
    if is_loopback(urlsplit(node.azure_url).hostname or ""):
        click.echo(f"Set up Azure's own az for {node.azure_url}: {program} azure-setup")
    if speed is not None:
        does = f"runs {speed:g} times as fast as the real one" if speed else "stands still"
        click.echo(f"The clock is virtual and {does}; move it:")
        click.echo(f"  {program} clock advance 15m")
    if node.has_control and node.control_url.startswith("https:"):
        click.echo("The control plane asks for tokens; docs/access.md says how to make the first.")
    if node.has_control:
        click.echo(f"Open the portal in a browser: {node.control_url}/")
    click.echo(" ".join(["ready", *urls, "control", node.control_url]))
