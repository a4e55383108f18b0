"""`fairwarning agent check-config` reports every mistake in a config.

It also looks for what would make an action fail at the worst moment: when an event has come. It
looks as the user who runs it, so the agent's own user should run it too.
"""

import asyncio
import json
import os
import shutil
import socket
import stat
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

from fairwarning.agent.actions import notify
from fairwarning.agent.actions.base import ActionFailed
from fairwarning.agent.actions.patroni import refusal
from fairwarning.agent.actions.patroni_api import PatroniApi
from fairwarning.agent.cli.main import config_option, json_option, load
from fairwarning.agent.config.model import (
    Action,
    Approve,
    Config,
    HaProxy,
    Kubernetes,
    Nginx,
    Notify,
    Patroni,
    Phase,
    Run,
    Settings,
    Systemd,
)
from fairwarning.agent.config.table import BadConfig
from fairwarning.agent.host_shutdown import NoLogind, connect_logind, too_short
from fairwarning.agent.rules import never_taken
from fairwarning.client.model import Instance
from fairwarning.common.escape import one_line

_EXAMPLES = """\b
Examples:
  fairwarning agent check-config agent.toml
  fairwarning agent check-config agent.toml --json
"""


ASK_S = 10.0
"""How long kubectl and systemctl may take to answer. A cluster that is away would take longer."""
_RIGHTS = (
    ("get", "nodes"),
    ("patch", "nodes"),
    ("list", "pods", "--all-namespaces"),
    ("create", "pods", "--subresource=eviction", "--all-namespaces"),
)
"""What `kubectl drain` needs: to read and cordon the node, and to evict its pods."""


@click.command("check-config", epilog=_EXAMPLES)
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@config_option
@json_option
def check_config(file: Path | None, path: Path, is_json: bool) -> None:
    """Report every mistake in FILE.

    It also warns of what would fail only when an event has come: a program, file, socket, unit or
    Apprise that is not there, a state that cannot be written, and rights that kubectl lacks. Run it
    on the VM, as the user of the agent. Without FILE, the file of --config is checked.
    """
    path = file or path
    try:
        config = load(path)
    except BadConfig as bad:
        _tell_mistakes(path, bad, is_json=is_json)
        raise SystemExit(1) from None
    warnings = [
        f"rule {late.name!r} is never taken: {early.name!r} before it takes all that it could"
        for late, early in never_taken(config)
    ]
    warnings += missing(config)
    if is_json:
        names = [rule.name for rule in config.rules]
        shown = {"ok": True, "rules": names, "mistakes": [], "warnings": warnings}
        click.echo(json.dumps(shown))
        return
    click.echo(f"{path} is in order. Its rules, of which the first that fits is taken:")
    for rule in config.rules:
        lists = ((phase, rule.actions(phase)) for phase in Phase)
        counts = [f"{len(actions)} {phase}" for phase, actions in lists if actions]
        click.echo(f"  {rule.name}: {', '.join(counts) or 'no actions'}")
    for each in warnings:
        click.echo(one_line(f"{path}: warning: {each}"), err=True)


def _tell_mistakes(path: Path, bad: BadConfig, *, is_json: bool) -> None:
    if is_json:
        shown = [{"line": each.line, "message": each.message} for each in bad.mistakes]
        click.echo(json.dumps({"ok": False, "rules": [], "mistakes": shown, "warnings": []}))
        return
    for each in bad.mistakes:
        click.echo(one_line(f"{path}:{each.line}: {each.message}"), err=True)


def missing(config: Config) -> list[str]:
    """Return a warning for each thing that the config needs and that is not there."""
    found: dict[str, None] = {}
    for why in _state(Path(config.state)):
        found[why] = None
    for why in _host_shutdown(config):
        found[f"host_shutdown: {why}"] = None
    for rule in config.rules:
        for why in _approval(rule.approve):
            found[f"rule {rule.name!r}: approve: {why}"] = None
        for phase in Phase:
            for action in rule.actions(phase):
                for why in _action(action):
                    found[f"rule {rule.name!r}: {action.title}: {why}"] = None
    return [*found]


def _state(path: Path) -> Iterator[str]:
    folder = path.parent
    while not os.path.exists(folder) and folder != folder.parent:
        folder = folder.parent
    if not os.path.isdir(folder):
        yield f"state {path}: {folder} is no folder"
    elif not os.access(folder, os.W_OK | os.X_OK):
        yield f"state {path}: {folder} cannot be written by this user"
    elif os.path.exists(path) and not os.access(path, os.R_OK):
        yield f"state {path}: this user cannot read it"


def _host_shutdown(config: Config) -> list[str]:
    return asyncio.run(_ask_logind(config)) if config.host_shutdown.delay else []


async def _ask_logind(config: Config) -> list[str]:
    try:
        login = await connect_logind(lambda: None)
        try:
            os.close(await login.inhibit("a try of check-config"))
            delay_s = await login.delay_max_s()
        finally:
            login.close()
    except NoLogind as problem:
        return [str(problem)]
    me = Instance(name=config.name or socket.gethostname())
    warning = too_short(config, me, datetime.now(UTC), delay_s)
    return [warning] if warning else []


def _approval(policy: Approve) -> Iterator[str]:
    if policy.hold is not None:
        yield from _program(policy.hold.command[0])
    if policy.peers is not None and policy.peers.directory:
        folder = policy.peers.directory
        if not os.path.isdir(folder):
            yield f"there is no folder {folder} for the peers"
        elif not os.access(folder, os.W_OK):
            yield f"the folder {folder} of the peers cannot be written by this user"


def _action(action: Action) -> Iterator[str]:
    yield from _settings(action.settings)
    if isinstance(action.undo, Run):
        yield from (f"undo: {why}" for why in _program(action.undo.command[0]))


def _settings(settings: Settings) -> Iterator[str]:
    match settings:
        case Run():
            yield from _program(settings.command[0])
        case Kubernetes():
            yield from _kubernetes(settings)
        case Systemd():
            yield from _systemd(settings)
        case HaProxy():
            yield from _haproxy(settings)
        case Nginx():
            yield from _nginx(settings)
        case Patroni():
            yield from asyncio.run(_patroni(settings))
        case Notify():
            if not notify.is_available():
                yield notify.NO_PACKAGE
        case _:
            pass


def _program(name: str) -> Iterator[str]:
    # A name with a value of the event in it is known only when the event has come.
    if "{" not in name and shutil.which(name) is None:
        yield f"there is no program {name} that this user can run"


def _kubernetes(settings: Kubernetes) -> Iterator[str]:
    if shutil.which(settings.kubectl) is None:
        yield f"there is no program {settings.kubectl} that this user can run"
        return
    if settings.kubeconfig and not os.access(settings.kubeconfig, os.R_OK):
        yield f"the kubeconfig {settings.kubeconfig} is not there or cannot be read"
        return
    options = [f"--kubeconfig={settings.kubeconfig}"] if settings.kubeconfig else []
    options += [f"--context={settings.context}"] if settings.context else []
    for right in _RIGHTS if settings.drain else _RIGHTS[:2]:
        said = _asked([settings.kubectl, *options, "auth", "can-i", *right])
        if said is None:
            yield f"{settings.kubectl} did not answer in {ASK_S:.0f} s; is the cluster reachable?"
            return
        if said.splitlines()[-1:] == ["yes"]:
            continue
        if "no" not in said.split():
            yield f"{settings.kubectl} cannot ask the cluster: {' '.join(said.split())[:200]}"
            return
        yield f"the cluster does not let {settings.kubectl} {' '.join(right[:2])}"


def _systemd(settings: Systemd) -> Iterator[str]:
    if shutil.which("systemctl") is None:
        yield "there is no program systemctl that this user can run"
        return
    scope = ["--user"] if settings.user else []
    for unit in settings.stop:
        show = ["systemctl", *scope, "show", "--property=LoadState", "--value", "--", unit]
        if "{" not in unit and (_asked(show) or "").strip() == "not-found":
            yield f"systemd knows no unit {unit}"


def _haproxy(settings: HaProxy) -> Iterator[str]:
    path = settings.socket
    if not path.startswith("/") or "{" in path:
        return
    try:
        is_socket = stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError as problem:
        yield f"the socket {path}: {problem.strerror}"
        return
    if not is_socket:
        yield f"{path} is no socket"
    elif not os.access(path, os.W_OK):
        yield f"the socket {path} cannot be written by this user"


def _nginx(settings: Nginx) -> Iterator[str]:
    if "{" not in settings.file:
        if not os.path.isfile(settings.file):
            yield f"there is no file {settings.file}"
        elif not os.access(os.path.dirname(settings.file) or ".", os.W_OK):
            yield f"the folder of {settings.file} cannot be written by this user"
    yield from _program(settings.reload[0])


async def _patroni(settings: Patroni) -> list[str]:
    api = PatroniApi(settings)
    try:
        cluster = await api.cluster()
        answer = await api.try_credentials()
    except ActionFailed as problem:
        return [str(problem)]
    names = [each.name for each in cluster.members]
    found = [refusal(answer, cluster, "")] if answer.status in (401, 403) else []
    if len(names) == 1:
        found.append(f"the cluster has no member but {names[0]}, so nobody can take over")
    if settings.candidate and "{" not in settings.candidate and settings.candidate not in names:
        found.append(f"the cluster has no member {settings.candidate}, only {', '.join(names)}")
    if cluster.is_paused and not settings.candidate:
        found.append("the cluster is paused, so there is no switchover without a `candidate`")
    return found


def _asked(command: list[str]) -> str | None:
    """Return what the command says, or None if it took too long."""
    try:
        done = subprocess.run(  # noqa: S603  The config names the program.
            command, capture_output=True, text=True, timeout=ASK_S, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return None
    except OSError as problem:
        return str(problem)
    return done.stdout + done.stderr
