"""`fairwarning serve` runs the whole service, or the roles of it that are chosen."""

import os
import resource
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
import uvloop

from fairwarning import logs
from fairwarning.boot import default_store_url
from fairwarning.cli.click_types import Number, host_and_port
from fairwarning.cli.ready_message import tell_ready
from fairwarning.cli.run_node import CANNOT_START, run_alone
from fairwarning.cli.serve_config import read_config
from fairwarning.cli.serve_option_checks import (
    idle_ms,
    lease_ms,
    node_roles,
    origin,
    stale_max_s,
    store_timeout_s,
)
from fairwarning.cli.serve_workers import WORKERS_MAX, serve_with_workers
from fairwarning.cli.store_options import StoreUrls, store_options
from fairwarning.common.command_errors import Problem, bad_file
from fairwarning.common.text_files import read_text
from fairwarning.core.api_versions import BY_NAME
from fairwarning.core.limits import OPERATIONS_PENDING_MAX, Timing
from fairwarning.core.refusals import Refused
from fairwarning.core.roster import refuse_address
from fairwarning.drivers import plugins
from fairwarning.engine.clocks import SPEED_MAX
from fairwarning.engine.node_roles import NodeRole, NodeRoles
from fairwarning.engine.service import Rules
from fairwarning.fleet_file.model import Fleet
from fairwarning.fleet_file.problems import FleetProblem
from fairwarning.fleet_file.read import read_toml
from fairwarning.logs import FORMATS
from fairwarning.metadata.identity import is_loopback
from fairwarning.metadata.settings import ACTIVATION_DELAY_S_MAX, EndpointRules
from fairwarning.node import NodeSettings
from fairwarning.operator_api.server import Tls
from fairwarning.workers.children import CannotStart

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_EXAMPLES = """\b
Examples:
  fairwarning serve
  fairwarning serve --metadata 127.0.0.1:0 --control 127.0.0.1:0 --store memory: --json
  fairwarning serve --fleet fleet.toml --clock virtual
  fairwarning serve --clock-speed 60
  fairwarning serve --metadata 169.254.169.254:80 --store postgresql://fw@db/fairwarning
"""


@click.command(epilog=_EXAMPLES)
@click.option(
    "--metadata",
    "addresses",
    multiple=True,
    default=["127.0.0.1:8169"],
    show_default=True,
    type=host_and_port,
    metavar="HOST:PORT",
    help="Address on which the metadata endpoint listens for instances (repeatable; port 0 "
    "picks a free port).",
)
@store_options
@click.option(
    "--control",
    "control",
    default="127.0.0.1:8170",
    show_default=True,
    type=host_and_port,
    metavar="HOST:PORT",
    help="Address on which the control plane listens, with the operator API and the "
    "portal. An address other than loopback needs --tls-certificate, --tls-key and "
    "tokens.",
)
@click.option(
    "--tls-certificate",
    "certificate",
    type=_FILE,
    metavar="FILE",
    help="PEM file with the certificate of the control plane and its chain.",
)
@click.option(
    "--tls-key",
    "key",
    type=_FILE,
    metavar="FILE",
    help="PEM file with the private key of the certificate, without a passphrase.",
)
@click.option(
    "--azure",
    type=host_and_port,
    metavar="HOST:PORT",
    help="Address on which the server listens for az and the Azure SDKs, over TLS with a "
    "certificate that the server creates itself (default: the port after that of "
    "--control, if that port is free and --control has no TLS).",
)
@click.option("--no-azure", is_flag=True, help="Do not listen for az and the Azure SDKs.")
@click.option(
    "--azure-folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Folder where the server keeps the certificate of --azure and the certificate "
    "authority that signs it (default: a folder in your data folder).",
)
@click.option(
    "--fleet",
    "fleet_file",
    type=_FILE,
    metavar="FILE",
    help="Fleet file (TOML) that is applied to the fleet at start.",
)
@click.option(
    "--clock",
    "clock",
    type=click.Choice(["system", "virtual"]),
    default="system",
    show_default=True,
    help="Which clock the server uses. A virtual one stands still until `fairwarning clock "
    "advance` moves it.",
)
@click.option(
    "--clock-speed",
    "clock_speed",
    type=Number(0, SPEED_MAX, min_open=True),
    default=None,
    metavar="N",
    help="Use a virtual clock that runs by itself, N times as fast as the real one.",
)
@click.option(
    "--role",
    "roles",
    multiple=True,
    callback=node_roles,
    metavar="ROLE",
    help="What this server does: metadata answers instances, engine starts events and calls "
    "drivers, control serves the operator API and the portal (repeatable, or with commas; "
    "default: all). Servers can divide the roles if they share a PostgreSQL.",
)
@click.option(
    "--workers",
    type=click.IntRange(0, WORKERS_MAX),
    default=0,
    show_default=True,
    metavar="N",
    help="How many extra processes answer the polls of instances: one for each core that they may "
    "use. 0 runs everything in one process.",
)
@click.option(
    "--stale-max",
    "stale_max",
    default="5m",
    show_default=True,
    callback=stale_max_s,
    metavar="DURATION",
    help="How long instances get the last known documents while the store or the engine's process "
    "cannot be reached. After that they get 503. With `never` there is no limit.",
)
@click.option(
    "--store-timeout",
    "store_timeout",
    default="3s",
    show_default=True,
    callback=store_timeout_s,
    metavar="DURATION",
    help="How long PostgreSQL may be silent before a connection to it is given up, and how long "
    "an instance waits for the store before it gets 503.",
)
@click.option("--empty", is_flag=True, help="Do not create the starter fleet in an empty store.")
@click.option(
    "--activation-delay",
    "delay_s",
    type=click.IntRange(0, ACTIVATION_DELAY_S_MAX),
    default=0,
    show_default=True,
    metavar="SECONDS",
    help="How long the server delays its answer to the first request of each scope. Azure "
    "takes up to two minutes.",
)
@click.option(
    "--idle-after",
    "idle_ms",
    default="24h",
    show_default=True,
    callback=idle_ms,
    metavar="DURATION",
    help="How long the instances of a scope may send no request before the scope is switched "
    "off until the next request. Up to 15 minutes more may pass.",
)
@click.option(
    "--lease",
    "lease_ms",
    default="30s",
    show_default=True,
    callback=lease_ms,
    metavar="DURATION",
    help="How long a server may be silent before another one takes over its driver's work. "
    "All servers of a store need the same value.",
)
@click.option(
    "--operations-max",
    type=click.IntRange(0),
    default=OPERATIONS_PENDING_MAX,
    show_default=True,
    metavar="N",
    help="How many restarts, redeploys and reimages of users may wait for their start at once, "
    "for each subscription (0: no limit).",
)
@click.option(
    "--rate",
    type=click.IntRange(0),
    metavar="N",
    help="How many requests per second each instance may send to the metadata endpoint. 0 sets"
    " no limit (default: 5, and no limit in a test fleet).",
)
@click.option(
    "--unknown-version",
    "status",
    type=click.Choice(["400", "404"]),
    default="400",
    show_default=True,
    help="HTTP status of the answer to a request with an api-version that the endpoint does "
    "not know.",
)
@click.option(
    "--newest-version",
    type=click.Choice([*BY_NAME]),
    help="Newest api-version of scheduledevents that the endpoint knows (default: 2020-07-01). "
    "Azure does not document 2024-07-09, which OpenShift's handler asks for first.",
)
@click.option(
    "--lenient-post",
    is_flag=True,
    help="Accept approvals without the header `Metadata: true`, as some old programs send them.",
)
@click.option(
    "--public-url",
    metavar="URL",
    callback=origin,
    help="URL at which a reverse proxy that ends TLS offers the control plane, such as "
    "https://fw.example. Everybody then needs a token, on loopback too.",
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="Address of a proxy that may name instances by X-Instance-ID, signed with the "
    "secret in the environment variable FAIRWARNING_PROXY_SECRET.",
)
@click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default="human",
    show_default=True,
    help="Format of the log on standard error: lines of text for people, or a JSON object on "
    "each line.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="Log messages of this level and of more severe ones.",
)
@click.option(
    "--config",
    type=_FILE,
    is_eager=True,
    expose_value=False,
    callback=read_config,
    metavar="FILE",
    help="TOML file with the long names of these options as keys. Options on the command "
    "line take precedence.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the addresses of the started server as one JSON object.",
)
def serve(
    addresses: tuple[tuple[str, int], ...],
    control: tuple[str, int],
    certificate: Path | None,
    key: Path | None,
    public_url: str,
    azure: tuple[str, int] | None,
    no_azure: bool,
    azure_folder: Path | None,
    fleet_file: Path | None,
    clock: str,
    clock_speed: float | None,
    store: StoreUrls,
    roles: NodeRoles,
    workers: int,
    stale_max: float | None,
    store_timeout: float,
    empty: bool,
    delay_s: int,
    idle_ms: int,
    lease_ms: int,
    operations_max: int,
    rate: int | None,
    status: str,
    newest_version: str | None,
    lenient_post: bool,
    proxies: tuple[str, ...],
    log_format: str,
    log_level: str,
    as_json: bool,
) -> None:
    """Run the engine, the metadata endpoint and the control plane until Ctrl-C.

    No option is needed. The default store is a SQLite file in your data folder, and an empty
    store gets a starter fleet to try things with.
    """
    rules = _endpoint_rules(delay_s, rate, status, newest_version, lenient_post, proxies)
    rules = replace(rules, stale_s_max=stale_max, store_s_max=store_timeout)
    tls, timing = _tls(certificate, key), Timing(idle_ms=idle_ms, lease_ms=lease_ms)
    if azure is not None and no_azure:
        raise click.UsageError("--azure and --no-azure exclude each other; give one")
    has_own_time = clock == "virtual" or bool(clock_speed)
    _refuse_mix(roles, workers, fleet_file, store.url, has_own_time=has_own_time)
    logs.set_up(log_format, log_level)
    try:
        settings = NodeSettings(
            store_url=store.url or default_store_url(),
            store_direct_url=store.direct_url,
            metadata=list(addresses),
            control=control,
            rules=rules,
            engine_rules=Rules(timing=timing, operations_pending_max=operations_max),
            is_clock_virtual=clock == "virtual",
            clock_speed=clock_speed or 0,
            tls=tls,
            public_url=public_url,
            azure=azure or (None if no_azure or certificate else _next_to(control)),
            is_azure_optional=azure is None,
            azure_folder=azure_folder,
            fleet=None if fleet_file is None else read_fleet(fleet_file),
            makes_starter_fleet=not empty,
            roles=roles,
        )
        _run(settings, workers, as_json=as_json)
    except (*CANNOT_START, CannotStart) as problem:
        raise Problem(str(problem)) from None


def _tls(certificate: Path | None, key: Path | None) -> Tls | None:
    """Return the files of TLS, or None without both. Raises `click.UsageError` for only one."""
    if (certificate is None) != (key is None):
        raise click.UsageError("--tls-certificate and --tls-key belong together; give both")
    return None if certificate is None or key is None else Tls(certificate, key)


def _endpoint_rules(
    delay_s: int,
    rate: int | None,
    status: str,
    newest_version: str | None,
    lenient_post: bool,
    proxies: tuple[str, ...],
) -> EndpointRules:
    return EndpointRules(
        activation_delay_s=delay_s,
        requests_per_second_max=rate,
        unknown_version_status=int(status),
        newest_version=newest_version or "",
        is_header_optional_on_post=lenient_post,
        proxy_secret=_proxy_secret(proxies),
        proxy_addresses=frozenset(proxies),
    )


def _refuse_mix(
    roles: NodeRoles,
    workers: int,
    fleet_file: Path | None,
    store_url: str | None,
    *,
    has_own_time: bool,
) -> None:
    """Raise `click.UsageError` if roles, workers and other options do not fit together."""
    if fleet_file is not None and NodeRole.ENGINE not in roles:
        raise click.UsageError("--fleet needs the role engine; apply it with `fleet apply`")
    if not workers:
        return
    if NodeRole.METADATA not in roles:
        raise click.UsageError("--workers needs the role metadata, because workers answer polls")
    if has_own_time:
        raise click.UsageError("--workers needs the system's clock; leave --clock out")
    if store_url == "memory:":
        raise click.UsageError(
            "--workers needs a store that outlives a process; use sqlite:///PATH"
        )


def _run(settings: NodeSettings, workers: int, *, as_json: bool) -> None:
    raise_file_limit()
    on_ready = partial(tell_ready, store_url=settings.store_url, as_json=as_json)
    if workers:
        serve_with_workers(settings, workers, on_ready)
    else:
        uvloop.run(run_alone(settings, on_ready))


def _next_to(control: tuple[str, int]) -> tuple[str, int] | None:
    """Return the default address for clients of Azure, or None if `control` is not loopback."""
    host, port = control
    if not is_loopback(host):
        return None
    return host, port + 1 if 0 < port < 65_535 else 0


def _proxy_secret(proxies: tuple[str, ...]) -> str:
    """Return the proxies' secret from the environment, or "" without proxies.

    Raises `click.UsageError` if the secret is missing or an address is wrong.
    """
    secret = os.environ.get("FAIRWARNING_PROXY_SECRET", "")
    if proxies and not secret:
        raise click.UsageError("--proxy needs the secret in FAIRWARNING_PROXY_SECRET; set it")
    for address in proxies:
        try:
            refuse_address(address)
        except Refused as refused:
            raise click.UsageError(f"--proxy: {refused}") from None
    return secret if proxies else ""


def raise_file_limit() -> None:
    """Allow this process as many open files as possible, because each connection needs one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems report a limit that they do not grant.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def read_fleet(path: Path) -> Fleet:
    try:
        return read_toml(read_text(path), plugins.catalogue())
    except OSError as problem:
        raise Problem(f"{path} cannot be read: {problem.strerror}; name another file") from None
    except FleetProblem as problem:
        raise bad_file(str(path), problem.mistakes) from None
