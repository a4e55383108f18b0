"""Creates a network namespace that has only our own endpoint, at 169.254.169.254.

It is created with `unshare`, together with a user namespace unless we are root. No packet leaves
it. So a handler that uses this fixed address can be checked anywhere, also on a real Azure VM.
"""

import fcntl
import os
import socket
import struct
import subprocess
from functools import cache

ENDPOINT = "169.254.169.254"
PORT = 80
_NEW_NETWORK = ("unshare", "--net", "--uts")
_NEW_USER = ("--user", "--map-root-user")
_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_SIOCSIFADDR, _SIOCSIFNETMASK = 0x8916, 0x891C
_IFF_UP = 1


class NoNamespaces(Exception):
    """This system does not let us create a network namespace."""


@cache
def new_network() -> tuple[str, ...]:
    """Return the command prefix that runs a program in a new network namespace.

    Root uses no user namespace if possible, because it could not read the files of other users
    there. Raises `NoNamespaces` if this system does not allow a namespace.
    """
    with_user = (*_NEW_NETWORK, *_NEW_USER, "--")
    prefixes = [(*_NEW_NETWORK, "--"), with_user] if os.geteuid() == 0 else [with_user]
    error = ""
    for prefix in prefixes:
        # Try a second namespace inside, because some systems allow one but grant no rights in it.
        try:
            tried = subprocess.run(  # noqa: S603
                [*prefix, *_NEW_NETWORK, "--", "true"], capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            error = "there is no program `unshare` (package util-linux)"
            break
        if tried.returncode == 0:
            return prefix
        error = tried.stderr.strip()
    raise NoNamespaces(
        f"cannot make a network namespace: {error}; run as root, or allow user namespaces: "
        "sysctl -w user.max_user_namespaces=10000, on Debian kernel.unprivileged_userns_clone=1, "
        "on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0"
    )


def configure(hostname: str) -> None:
    """Set the host name, and give loopback the endpoint's address. Call it in a new namespace."""
    _refuse_shared_network()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        _bring_up(control, "lo")
        fcntl.ioctl(control, _SIOCSIFADDR, _request("lo:1", ENDPOINT))
        fcntl.ioctl(control, _SIOCSIFNETMASK, _request("lo:1", "255.255.255.255"))
        _bring_up(control, "lo:1")
    socket.sethostname(hostname)


def _refuse_shared_network() -> None:
    """Fail if the network has other interfaces, so that no network in use is changed."""
    names = [name for _, name in socket.if_nameindex()]
    has_route = any(name not in ("lo", "tunl0", "sit0", "ip6tnl0") for name in names)
    assert not has_route, f"this is no new network: it has {', '.join(names)}"


def _bring_up(control: socket.socket, name: str) -> None:
    found = fcntl.ioctl(control, _SIOCGIFFLAGS, struct.pack("16sh14x", name.encode(), 0))
    flags = struct.unpack("16sh14x", found)[1]
    fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh14x", name.encode(), flags | _IFF_UP))


def _request(name: str, address: str) -> bytes:
    return struct.pack("16sHH4s8x", name.encode(), socket.AF_INET, 0, socket.inet_aton(address))
