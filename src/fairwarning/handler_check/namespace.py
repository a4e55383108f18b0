"""A network of our own, in which 169.254.169.254 is ours and nothing else can be reached.

Made with `unshare`, with a user namespace where we are not root. No packet leaves it, so a
handler with the address built in can be tried on any machine, also on a real VM.
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
    """This machine lets us make no network namespace."""


@cache
def new_network() -> tuple[str, ...]:
    """The command that runs another one in a network of its own. Raises NoNamespaces.

    Root goes without a user namespace if it can: inside one it could no longer read the
    files of other users.
    """
    with_user = (*_NEW_NETWORK, *_NEW_USER, "--")
    ways = [(*_NEW_NETWORK, "--"), with_user] if os.geteuid() == 0 else [with_user]
    said = ""
    for way in ways:
        # A second one inside: some systems grant a user namespace and then no rights in it.
        try:
            tried = subprocess.run(  # noqa: S603
                [*way, *_NEW_NETWORK, "--", "true"], capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            said = "there is no program `unshare` (package util-linux)"
            break
        if tried.returncode == 0:
            return way
        said = tried.stderr.strip()
    raise NoNamespaces(
        f"cannot make a network namespace: {said}; run as root, or allow user namespaces: "
        "sysctl -w user.max_user_namespaces=10000, on Debian kernel.unprivileged_userns_clone=1, "
        "on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0"
    )


def furnish(hostname: str) -> None:
    """Inside a new network: loopback up, the endpoint's address on it, and a host name."""
    _refuse_if_inhabited()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        _raise(control, "lo")
        fcntl.ioctl(control, _SIOCSIFADDR, _request("lo:1", ENDPOINT))
        fcntl.ioctl(control, _SIOCSIFNETMASK, _request("lo:1", "255.255.255.255"))
        _raise(control, "lo:1")
    socket.sethostname(hostname)


def _refuse_if_inhabited() -> None:
    """The address must never be taken over in a network that others use."""
    names = [name for _, name in socket.if_nameindex()]
    has_route = any(name not in ("lo", "tunl0", "sit0", "ip6tnl0") for name in names)
    assert not has_route, f"this is no new network: it has {', '.join(names)}"


def _raise(control: socket.socket, name: str) -> None:
    found = fcntl.ioctl(control, _SIOCGIFFLAGS, struct.pack("16sh14x", name.encode(), 0))
    flags = struct.unpack("16sh14x", found)[1]
    fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh14x", name.encode(), flags | _IFF_UP))


def _request(name: str, address: str) -> bytes:
    return struct.pack("16sHH4s8x", name.encode(), socket.AF_INET, 0, socket.inet_aton(address))
