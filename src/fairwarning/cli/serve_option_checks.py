"""This module converts the values of the options of `serve`, and says why it refuses one."""

from urllib.parse import urlsplit

import click

from fairwarning.cli.times import NotATime, parse_duration_ms
from fairwarning.core.instants import DAY_MS, MINUTE_MS, SECOND_MS
from fairwarning.engine.node_roles import ALL_ROLES, NodeRole, NodeRoles
from fairwarning.metadata.freshness import STALE_S_MIN

_IDLE_DAYS_MAX = 366  # A year; longer would mean never.
_PORTS = {"http": 80, "https": 443}


def origin(_: click.Context, __: click.Parameter, value: str | None) -> str:
    """Return the origin of a URL as a browser sends it, or "" without a URL.

    Raises `click.BadParameter` if the URL is more than an origin.
    """
    if value is None:
        return ""
    try:
        found = urlsplit(value.lower())
        port = f":{found.port}" if found.port not in (None, _PORTS.get(found.scheme)) else ""
    except ValueError:
        found, port = urlsplit(""), ""
    is_whole = found.path in ("", "/") and not (found.query or found.fragment or found.username)
    if found.scheme not in _PORTS or not found.hostname or not is_whole:
        raise click.BadParameter("write a URL without a path, such as https://fw.example")
    host = f"[{found.hostname}]" if ":" in found.hostname else found.hostname
    return f"{found.scheme}://{host}{port}"


def idle_ms(_: click.Context, __: click.Parameter, value: str) -> int:
    found = duration_ms(value)
    if not MINUTE_MS <= found <= _IDLE_DAYS_MAX * DAY_MS:
        raise click.BadParameter(f"{value} is not from 1m to {_IDLE_DAYS_MAX}d")
    return found


def lease_ms(_: click.Context, __: click.Parameter, value: str) -> int:
    found = duration_ms(value)
    if not 5 * SECOND_MS <= found <= 10 * MINUTE_MS:
        raise click.BadParameter(f"{value} is not from 5s to 10m")
    return found


def node_roles(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> NodeRoles:
    names = [name.strip() for value in values for name in value.split(",") if name.strip()]
    known = [each.value for each in NodeRole]
    for name in names:
        if name not in known:
            raise click.BadParameter(f"{name!r} is no role; choose from {', '.join(known)}")
    return frozenset(map(NodeRole, names)) or ALL_ROLES


def duration_ms(value: str) -> int:
    try:
        return parse_duration_ms(value)
    except NotATime as problem:
        raise click.BadParameter(str(problem)) from None


def stale_max_s(_: click.Context, __: click.Parameter, value: str) -> float | None:
    """Return seconds, or None for `never`."""
    if value == "never":
        return None
    found = duration_ms(value)
    if found < STALE_S_MIN * SECOND_MS:
        raise click.BadParameter(
            f"{value} is too short: documents count as stale only after {STALE_S_MIN:.0f}s; "
            "write a longer time, or never"
        )
    return found / SECOND_MS


def store_timeout_s(_: click.Context, __: click.Parameter, value: str) -> float:
    found = duration_ms(value)
    if not SECOND_MS <= found <= MINUTE_MS:
        raise click.BadParameter(f"{value} is not from 1s to 1m")
    return found / SECOND_MS
