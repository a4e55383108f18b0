"""Reads an action of a rule: the settings of its kind, and the keys that all kinds have."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TypeVar
from urllib.parse import urlsplit

from fairwarning.agent.config.model import (
    TIMEOUT_S,
    UNDO_THEMSELVES,
    Action,
    HaProxy,
    Http,
    Kubernetes,
    Nginx,
    Notify,
    OnFailure,
    Patroni,
    Phase,
    Run,
    Settings,
    Systemd,
)
from fairwarning.agent.config.table import ConfigTable

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
RETRIES_MAX = 100  # More retries do not fit into any notice.
NGINX_RELOAD = ("nginx", "-s", "reload")
S = TypeVar("S", bound=Settings)


def read_action(table: ConfigTable, phase: Phase) -> Action | None:
    """Return one action, or None if its kind cannot be read. Mistakes are noted in the table."""
    given = [kind for kind in KINDS if kind in table.raw]
    settings = {kind: read(table, kind) for kind, read in KINDS.items()}
    action = Action(
        settings=Run(command=()),
        timeout_s=table.seconds("timeout", TIMEOUT_S, least_s=1),
        retries=table.whole("retries", 0, least=0, most=RETRIES_MAX),
        on_failure=table.choice("on_failure", OnFailure, OnFailure.STOP),
        undo=_undo(table, phase, given),
        name=table.text("name"),
    )
    table.close()
    if len(given) != 1:
        said = "only one of" if given else "one of"
        table.wrong(None, f"an action has {said} {', '.join(KINDS)}")
        return None
    found = settings[given[0]]
    return None if found is None else replace(action, settings=found)


def _undo(table: ConfigTable, phase: Phase, given: list[str]) -> Run | Http | None:
    value = table.raw.get("undo")
    if value is None:
        table.take("undo", str)
        return None
    if given and given[0] not in ("run", "http"):
        knows = KIND_TYPES[given[0]] in UNDO_THEMSELVES
        why = "undoes itself" if knows else "cannot be undone"
        table.wrong("undo", f"`{given[0]}` {why}; take `undo` out")
    elif phase in (Phase.FINISHED, Phase.CANCELLED):
        table.wrong("undo", f"what runs when an event is {phase} stays; take `undo` out")
    return _http(table, "undo") if isinstance(value, dict) else _run(table, "undo")


def _in_table(read: Callable[[ConfigTable], S]) -> Callable[[ConfigTable, str], S | None]:
    """Return a reader that opens the table at a key for `read`, and closes it afterwards."""

    @wraps(read)
    def reader(table: ConfigTable, key: str) -> S | None:
        inner = table.table(key)
        if inner is None:
            return None
        found = read(inner)
        inner.close()
        return found

    return reader


def _run(table: ConfigTable, key: str) -> Run | None:
    found = table.command(key)
    return None if found is None else Run(command=found[0], is_shell=found[1])


@_in_table
def _http(table: ConfigTable) -> Http:
    method = table.text("method", "POST").upper()
    if method not in METHODS:
        table.wrong("method", f"`method` may be {', '.join(METHODS)}")
    headers = table.strings("headers")
    for name, value in headers.items():
        table.check_templates("headers", value)
        if not name.strip() or any(each in name + value for each in "\r\n"):
            table.wrong("headers", f"`{name}` is no header")
    url = _url(table, "url", ("http", "https"))
    return Http(url=url, method=method, headers=headers, body=table.template("body"))


def _url(table: ConfigTable, key: str, schemes: tuple[str, ...]) -> str:
    url = table.template(key, needed=True)
    if url and url.partition("://")[0] not in schemes:
        table.wrong(key, f"`{key}` begins with {' or '.join(f'{each}://' for each in schemes)}")
    return url


@_in_table
def _kubernetes(table: ConfigTable) -> Kubernetes:
    grace_s = table.duration("grace_period", None)
    return Kubernetes(
        node=table.template("node", "{me}"),
        drain=table.flag("drain", True),
        kubectl=table.text("kubectl", "kubectl"),
        kubeconfig=table.text("kubeconfig"),
        context=table.text("context"),
        grace_period_s=None if grace_s is None else int(grace_s),
        ignore_daemonsets=table.flag("ignore_daemonsets", True),
        delete_emptydir_data=table.flag("delete_emptydir_data", False),
        force=table.flag("force", False),
        pod_selector=table.text("pod_selector"),
    )


@_in_table
def _systemd(table: ConfigTable) -> Systemd:
    units = table.texts("stop")
    if not units and "stop" not in table.raw:
        table.wrong(None, "`stop` is missing; name the units, such as ['nginx.service']")
    return Systemd(stop=units, user=table.flag("user", False))


@_in_table
def _haproxy(table: ConfigTable) -> HaProxy:
    found = HaProxy(
        socket=table.text("socket", needed=True),
        server=table.template("server", needed=True),
        state=table.text("state", "drain"),
        wait=table.flag("wait", True),
    )
    if found.server and found.server.count("/") != 1:
        table.wrong("server", "`server` is written backend/name, as in `show servers state`")
    if found.state not in ("drain", "maint"):
        table.wrong("state", "`state` may be drain or maint")
    return found


@_in_table
def _nginx(table: ConfigTable) -> Nginx:
    reload = table.command("reload")
    return Nginx(
        file=table.text("file", needed=True),
        upstream=table.template("upstream", needed=True),
        server=table.template("server", needed=True),
        reload=NGINX_RELOAD if reload is None else reload[0],
    )


@_in_table
def _patroni(table: ConfigTable) -> Patroni:
    found = Patroni(
        url=table.text("url", Patroni().url),
        candidate=table.template("candidate"),
        switch_back=table.flag("switch_back"),
        user=table.text("user"),
        password=table.text("password"),
        password_file=table.text("password_file"),
        ca_file=table.text("ca_file"),
        cert_file=table.text("cert_file"),
        key_file=table.text("key_file"),
    )
    _check_patroni(table, found)
    return found


def _check_patroni(table: ConfigTable, found: Patroni) -> None:
    scheme = _scheme(found.url)
    if scheme not in ("http", "https"):
        table.wrong("url", f"`url` is that of Patroni's REST API, such as {Patroni().url}")
    elif scheme == "http" and (found.ca_file or found.cert_file):
        table.wrong("url", "`ca_file` and `cert_file` are for https; begin `url` with https://")
    if found.password and found.password_file:
        table.wrong("password", "either `password` or `password_file`; take one out")
    if bool(found.user) != bool(found.password or found.password_file):
        table.wrong(None, "`user` needs `password` or `password_file`, and they need `user`")
    if found.key_file and not found.cert_file:
        table.wrong("key_file", "`key_file` is the key of `cert_file`, which is missing")


def _scheme(url: str) -> str:
    """Return the scheme of a URL with a host and no user. It is empty for any other text."""
    try:
        parts = urlsplit(url)
        is_plain = bool(parts.hostname) and parts.username is None and parts.port != 0
    except ValueError:
        return ""
    return parts.scheme if is_plain else ""


@_in_table
def _notify(table: ConfigTable) -> Notify:
    found = Notify(
        url=table.text("url", needed=True),
        title=table.template("title", "{event.type} of {event.resources}: {phase}"),
        body=table.template("body", "{event.description}"),
    )
    if found.url and "://" not in found.url:
        table.wrong("url", "`url` is one of Apprise's, such as slack://… or mailto://…")
    return found


KINDS: dict[str, Callable[[ConfigTable, str], Settings | None]] = {
    "run": _run,
    "http": _http,
    "kubernetes": _kubernetes,
    "systemd": _systemd,
    "haproxy": _haproxy,
    "nginx": _nginx,
    "patroni": _patroni,
    "notify": _notify,
}
KIND_TYPES = {
    "run": Run, "http": Http, "kubernetes": Kubernetes, "systemd": Systemd, "haproxy": HaProxy,
    "nginx": Nginx, "patroni": Patroni, "notify": Notify,
}  # fmt: skip
