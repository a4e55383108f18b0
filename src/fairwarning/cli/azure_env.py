"""Builds the commands and environment variables that make Azure's clients use this server."""

import configparser
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from fairwarning.common.command_errors import Problem

_PROXIES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


class Access(NamedTuple):
    """What a client of Azure needs to log in to this server."""

    cloud: str
    url: str
    tenant: str
    subscription: str
    client_id: str
    secret: str
    ca_file: str | None
    """The authority's certificate file. It is None if clients trust the authority already."""


def environment(access: Access, around: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that az and the SDKs need in addition to `around`, the current ones.

    They name the authority to trust, and exclude a local server from a proxy.
    """
    found = {} if access.ca_file is None else {"REQUESTS_CA_BUNDLE": access.ca_file}
    host = urlsplit(access.url).hostname or ""
    if not _is_here(host) or not any(around.get(name) for name in _PROXIES):
        return found
    spared = around.get("no_proxy") or around.get("NO_PROXY") or ""
    if host not in (each.strip() for each in spared.split(",")):
        both = f"{spared},{host}".lstrip(",")
        found |= {"no_proxy": both, "NO_PROXY": both}
    return found


# As a tenant, this word keeps the SDKs from asking Microsoft whether the authority is known.
_TENANT = "adfs"


def sdk_environment(access: Access) -> dict[str, str]:
    """Return the variables that DefaultAzureCredential and Ansible's azure.azcollection read.

    Node.js does not trust what REQUESTS_CA_BUNDLE names, so it has a variable of its own.
    """
    trusted = {} if access.ca_file is None else {"NODE_EXTRA_CA_CERTS": access.ca_file}
    return {
        **trusted,
        "AZURE_AUTHORITY_HOST": access.url,
        "AZURE_TENANT_ID": _TENANT,
        "AZURE_CLIENT_ID": access.client_id,
        "AZURE_CLIENT_SECRET": access.secret,
        "AZURE_SUBSCRIPTION_ID": access.subscription,
        "AZURE_CLOUD_ENVIRONMENT": access.url,
        "AZURE_TENANT": _TENANT,
        "AZURE_SECRET": access.secret,
    }


def exports(variables: Mapping[str, str]) -> list[str]:
    return [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]


def register_words(access: Access, *, is_known: bool) -> list[str]:
    verb = "update" if is_known else "register"
    return ["cloud", verb, "-n", access.cloud, "--endpoint-resource-manager", access.url]


def set_words(cloud: str) -> list[str]:
    return ["cloud", "set", "-n", cloud]


def login_words(access: Access) -> list[str]:
    """Return the login command. It reads the secret from stdin, because `ps` shows arguments."""
    return ["login", "--service-principal", "-u", access.client_id, "-p", "@-",
            "--tenant", access.tenant]  # fmt: skip


def az_lines(access: Access, *, is_known: bool) -> list[str]:
    steps = (register_words(access, is_known=is_known), set_words(access.cloud))
    login = shlex.join(["az", *login_words(access)])
    return [
        *(shlex.join(["az", *words]) for words in steps),
        f"printf %s {shlex.quote(access.secret)} | {login}",
    ]


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


_HOME_CLOUD = "AzureCloud"
_STEP_S_MAX = 180  # az takes many seconds for a step; one that hangs must end.


class Az:
    def __init__(self, program: str, variables: Mapping[str, str]) -> None:
        self._program = program
        self._env = {**os.environ, **variables}

    def set_up(self, access: Access) -> None:
        """Register or update the cloud, log out older clients, and log in. May raise `Problem`."""
        self._run(register_words(access, is_known=is_registered(access.cloud)))
        self._run(set_words(access.cloud))
        for client in self._clients(access.cloud):
            self._log_out(client)
        self._run(login_words(access), said=access.secret)

    def undo(self, cloud: str) -> list[str]:
        """Log out and remove the cloud from az. Returns what failed, one text for each failure."""
        if not is_registered(cloud):
            return [f"az knows no cloud {cloud}"]
        active = json.loads(self._run(["cloud", "show"]))["name"]
        clients = self._clients(cloud)
        failures = []
        if clients:
            # az contacts the active cloud for every login that it drops.
            self._run(set_words(cloud))
            failures = [text for each in clients if (text := self._log_out(each))]
        self._run(set_words(_HOME_CLOUD if active == cloud else active))
        self._run(["cloud", "unregister", "-n", cloud])
        return failures

    def _clients(self, cloud: str) -> list[str]:
        """Return the names of the clients that are logged in to this cloud."""
        found = json.loads(self._run(["account", "list", "--all"]))
        return sorted({each["user"]["name"] for each in found if each["cloudName"] == cloud})

    def _log_out(self, client: str) -> str:
        """Log out. Returns why it failed, or "". az needs the server to log out."""
        try:
            self._run(["logout", "--username", client])
        except Problem as problem:
            return problem.message
        return ""

    def _run(self, words: Sequence[str], said: str = "") -> str:
        try:
            done = subprocess.run(  # noqa: S603  it is the user's own az
                [self._program, *words, "--output", "json", "--only-show-errors"],
                input=said, capture_output=True, text=True, check=False, env=self._env,
                timeout=_STEP_S_MAX,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise Problem(f"az {words[0]} could not be run ({problem}); try it by hand") from None
        if done.returncode:
            raise Problem(f"`az {' '.join(words[:2])}` failed: {_reason(done.stderr)}")
        return done.stdout


def find_az() -> str | None:
    return shutil.which("az")


def is_registered(cloud: str) -> bool:
    """Return whether az knows this cloud. Reads the files of az, because az itself is slow."""
    folder = Path(os.environ.get("AZURE_CONFIG_DIR") or "~/.azure").expanduser()
    clouds = configparser.RawConfigParser()
    try:
        clouds.read(folder / "clouds.config", encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):
        return False
    return clouds.has_section(cloud)


def _reason(stderr: str) -> str:
    """Return the error of az without its warnings."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["it said nothing"])[0]
