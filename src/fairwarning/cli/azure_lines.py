"""What a shell must be told so that Azure's own clients use a Fairwarning server. Pure."""

import shlex
from collections.abc import Mapping
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

_PROXIES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


class Access(NamedTuple):
    """All that a client needs to know."""

    cloud: str
    url: str
    tenant: str
    subscription: str
    client_id: str
    secret: str
    ca_file: str | None
    """None: the clients know the authority already."""


def environment(access: Access, around: Mapping[str, str]) -> dict[str, str]:
    """For az and the SDKs alike: whom to trust, and no proxy on the way to this machine."""
    found = {} if access.ca_file is None else {"REQUESTS_CA_BUNDLE": access.ca_file}
    host = urlsplit(access.url).hostname or ""
    if not _is_here(host) or not any(around.get(name) for name in _PROXIES):
        return found
    spared = around.get("no_proxy") or around.get("NO_PROXY") or ""
    if host not in (each.strip() for each in spared.split(",")):
        both = f"{spared},{host}".lstrip(",")
        found |= {"no_proxy": both, "NO_PROXY": both}
    return found


def sdk_environment(access: Access) -> dict[str, str]:
    """What DefaultAzureCredential reads, and the subscription for the program's own use."""
    return {
        "AZURE_AUTHORITY_HOST": access.url,
        # This word keeps the SDKs from asking Microsoft whether they may trust the authority.
        "AZURE_TENANT_ID": "adfs",
        "AZURE_CLIENT_ID": access.client_id,
        "AZURE_CLIENT_SECRET": access.secret,
        "AZURE_SUBSCRIPTION_ID": access.subscription,
    }


def exports(variables: Mapping[str, str]) -> list[str]:
    return [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]


def register_words(access: Access, *, is_known: bool) -> list[str]:
    verb = "update" if is_known else "register"
    return ["cloud", verb, "-n", access.cloud, "--endpoint-resource-manager", access.url]


def set_words(cloud: str) -> list[str]:
    return ["cloud", "set", "-n", cloud]


def login_words(access: Access) -> list[str]:
    """The secret comes on standard input, because `ps` would show it here."""
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
