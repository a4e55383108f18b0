"""`fairwarning serve`: the engine and the metadata endpoint in one process."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from urllib.parse import urlsplit

import click
import uvloop

from fairwarning import __version__
from fairwarning.boot import (
    BadStoreUrl,
    default_store_url,
    make_engine,
    make_metadata_server,
    make_store,
)
from fairwarning.core.fleet import expand
from fairwarning.core.model import operator_actor
from fairwarning.core.refusals import Refused
from fairwarning.core.roster import refuse_address
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.ports import Store, StoreDown
from fairwarning.engine.service import Engine
from fairwarning.metadata.identity import is_loopback
from fairwarning.metadata.limits import ACTIVATION_DELAY_S_MAX, EndpointRules
from fairwarning.starter import STARTER_FLEET

_POLL = "/vm/{}/metadata/scheduledevents?api-version=2020-07-01"
_EXAMPLES = """\b
Examples:
  fairwarning serve
  fairwarning serve --metadata 127.0.0.1:0 --store memory: --json
  fairwarning serve --metadata 169.254.169.254:80 --store postgresql://fw@db/fairwarning
"""


class CannotListen(Exception):
    def __init__(self, problem: OSError) -> None:
        super().__init__(
            f"cannot listen on {problem.strerror}; choose another address with --metadata"
        )


def _address(_: click.Context, __: click.Parameter, values: Sequence[str]) -> list[tuple[str, int]]:
    return [_one_address(value) for value in values]


def _one_address(value: str) -> tuple[str, int]:
    host, _, port = value.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise click.BadParameter(f"{value!r} is no HOST:PORT; write one like 127.0.0.1:8169")
    return host.strip("[]"), int(port)


@click.command(epilog=_EXAMPLES)
@click.option(
    "--metadata",
    "addresses",
    multiple=True,
    default=["127.0.0.1:8169"],
    show_default=True,
    callback=_address,
    metavar="HOST:PORT",
    help="Where instances ask. May be given several times; port 0 picks a free one.",
)
@click.option(
    "--store", "store_url", metavar="URL", help="sqlite:///PATH, postgresql://… or memory:."
)
@click.option("--empty", is_flag=True, help="Do not make a starter fleet in an empty store.")
@click.option(
    "--activation-delay",
    "delay_s",
    type=click.IntRange(0, ACTIVATION_DELAY_S_MAX),
    default=0,
    show_default=True,
    metavar="SECONDS",
    help="How long a scope's first call takes, as on Azure.",
)
@click.option(
    "--rate",
    type=click.IntRange(0),
    metavar="N",
    help="Requests per second of each instance, 0 for no limit. Unless set: 5, and no limit in "
    "a test fleet.",
)
@click.option(
    "--unknown-version",
    "status",
    type=click.Choice(["400", "404"]),
    default="400",
    show_default=True,
    help="What an unknown api-version of scheduledevents gets.",
)
@click.option(
    "--lenient-post",
    is_flag=True,
    help="Take approvals without `Metadata: true`, as old samples send them.",
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="A proxy that may name instances by X-Instance-ID, signed with the secret in the "
    "environment variable FAIRWARNING_PROXY_SECRET.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the line `ready` as JSON.")
def serve(
    addresses: list[tuple[str, int]],
    store_url: str | None,
    empty: bool,
    delay_s: int,
    rate: int | None,
    status: str,
    lenient_post: bool,
    proxies: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run the engine and the metadata endpoint until Ctrl-C.

    Nothing needs to be configured: the store is a SQLite file in your data folder, and an
    empty one gets a starter fleet to rehearse with.
    """
    rules = EndpointRules(
        activation_delay_s=delay_s,
        requests_per_second_max=rate,
        unknown_version_status=int(status),
        is_header_optional_on_post=lenient_post,
        proxy_secret=_proxy_secret(proxies),
        proxy_addresses=frozenset(proxies),
    )
    url = store_url or default_store_url()
    try:
        uvloop.run(_serve(addresses, url, rules, make_fleet=not empty, as_json=as_json))
    except (BadStoreUrl, StoreDown, Refused, CannotListen) as problem:
        sys.exit(f"fairwarning: {problem}")


def _proxy_secret(proxies: tuple[str, ...]) -> str:
    """From the environment, because a command line can be read by everybody on the machine."""
    secret = os.environ.get("FAIRWARNING_PROXY_SECRET", "")
    if proxies and not secret:
        raise click.UsageError("--proxy needs the secret in FAIRWARNING_PROXY_SECRET; set it")
    for address in proxies:
        try:
            refuse_address(address)
        except Refused as refused:
            raise click.UsageError(f"--proxy: {refused}") from None
    return secret if proxies else ""


async def _serve(
    addresses: list[tuple[str, int]],
    store_url: str,
    rules: EndpointRules,
    *,
    make_fleet: bool,
    as_json: bool,
) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    clock = SystemClock()
    store = make_store(store_url, clock)
    await store.open()
    engine = make_engine(store, clock)
    try:
        made = make_fleet and await _make_starter_fleet(engine, store)
        try:
            server = await make_metadata_server(engine, store, clock, addresses, rules)
        except OSError as problem:
            raise CannotListen(problem) from problem
        await engine.start()
        server.start()
        poll = None if as_json else await _example(store)
        _tell_ready(server.urls, store_url, poll, made_fleet=made, as_json=as_json)
        await stopping.wait()
        await server.stop()
    finally:
        await engine.stop()
        await store.close()


async def _example(store: Store) -> str | None:
    """The path of a poll that works as pasted."""
    for scope in await store.scopes(limit=100):
        for instance in scope.roster.live:
            return _POLL.format(instance.name)
    return None


async def _make_starter_fleet(engine: Engine, store: Store) -> bool:
    if await store.scope_ids(limit=1):
        return False
    await engine.declare(STARTER_FLEET, by=operator_actor("starter"), why="the store was empty")
    return True


def _shown(store_url: str) -> str:
    """Without user, password and parameters."""
    if not store_url.startswith("postgres"):
        return store_url.removeprefix("sqlite:///")
    parts = urlsplit(store_url)
    return f"postgresql://{parts.hostname or ''}{parts.path}"


def _tell_ready(
    urls: list[str], store_url: str, poll: str | None, *, made_fleet: bool, as_json: bool
) -> None:
    if as_json:
        click.echo(json.dumps({"ready": True, "metadata": urls}))
        return
    click.echo(f"Fairwarning {__version__}, store {_shown(store_url)}")
    if made_fleet:
        scopes = (scope for each in STARTER_FLEET for scope in expand(each))
        names = ", ".join(name for scope in scopes for name in scope.roster.instances)
        click.echo("The store was empty, so it got a starter fleet to rehearse with (--empty for")
        click.echo(f"none): {names}.")
    if poll is None:
        click.echo("The fleet is empty, so nobody can ask. Start without --empty to get one.")
    elif is_loopback(urlsplit(urls[0]).hostname or ""):
        click.echo("Ask as one of its machines, from another terminal:")
        click.echo(f"  curl -H Metadata:true '{urls[0]}{poll}'")
    elif made_fleet:
        click.echo("None of its machines has an address, so nobody is known on this listener; it")
        click.echo("can be asked on a loopback address.")
    click.echo(f"ready {' '.join(urls)}")
