"""The network of a story: the endpoint's addresses, and each VM on a link of its own.

Theory of operation. The story's process is in the outer network, which has the endpoint's
addresses on its loopback interface and one end of each VM's link; servers start here. A VM is a
process that holds a network and a host name; it ends when its standard input does, so none can
outlive the story. The links are routed, not bridged: answers to an address go down that VM's
link whoever claims the address, so a VM that lies about its own never completes a connection.

Made with rtnetlink (pyroute2) and util-linux, so that the `ip` command is not needed.
"""

import ipaddress
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from pyroute2 import IPRoute, netns  # type: ignore[import-untyped]

from tests.support.patience import HANG_S
from tests.support.processes import clean_environment, running

P = ParamSpec("P")
R = TypeVar("R")

_LOOPBACK_INDEX = 1
_NO_DUPLICATE_DETECTION = 0x02
"""IFA_F_NODAD: an IPv6 address is usable at once."""
_HOLD = """
import socket, sys
socket.sethostname(sys.argv[1])
print("up", flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True, slots=True)
class Vm:
    name: str
    addresses: tuple[str, ...]
    pid: int

    def command(self, argv: Sequence[str]) -> list[str]:
        """Returns the command that runs `argv` in this VM: its network, its host name."""
        return ["nsenter", f"--target={self.pid}", "--net", "--uts", "--", *argv]

    def run(
        self, argv: Sequence[str], *, timeout_s: float = HANG_S, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Runs `argv` to its end and returns what it printed, also if it failed."""
        options.setdefault("env", clean_environment())
        return subprocess.run(
            self.command(argv),
            capture_output=True,
            check=False,
            text=True,
            timeout=timeout_s,
            **options,
        )

    def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls a function in this VM's network: each socket that it opens is the VM's."""

        def enter() -> R:
            netns.setns(self._network, flags=0)
            return function(*args, **kwargs)

        # Only the thread that enters a network is in it, and it ends with the call.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(enter).result()

    @property
    def _network(self) -> str:
        return f"/proc/{self.pid}/ns/net"


class Rig:
    def __init__(self, vms: Mapping[str, Sequence[str]], endpoints: Sequence[str]) -> None:
        self._wanted = vms
        self._endpoints = endpoints
        self._closing = ExitStack()
        self.vms: dict[str, Vm] = {}

    def __enter__(self) -> Self:
        try:
            self._plug()
        except BaseException:
            self._closing.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.close()

    def start(self, argv: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """Starts a process that ends with the rig. For one in a VM, start `vm.command(argv)`."""
        return self._closing.enter_context(running(argv, **options))

    def _plug(self) -> None:
        with IPRoute() as outer:
            outer.link("set", index=_LOOPBACK_INDEX, state="up")
            for endpoint in self._endpoints:
                _add_address(outer, _LOOPBACK_INDEX, endpoint)
            for number, (name, addresses) in enumerate(self._wanted.items()):
                self.vms[name] = self._plug_vm(outer, f"vm{number}", name, tuple(addresses))

    def _plug_vm(self, outer: Any, link: str, name: str, addresses: tuple[str, ...]) -> Vm:
        vm = Vm(name, addresses, self._boot(name))
        outer.link("add", ifname=link, kind="veth", peer={"ifname": "eth0", "net_ns_pid": vm.pid})
        index = _raise(outer, link)
        _route(outer, index, addresses)
        for endpoint in _of_version(6, self._endpoints):
            # Neighbours are found by multicast, which an address on loopback does not join.
            _add_address(outer, index, endpoint)
        with IPRoute(netns=f"/proc/{vm.pid}/ns/net") as inner:
            inner.link("set", index=_LOOPBACK_INDEX, state="up")
            index = _raise(inner, "eth0")
            for address in addresses:
                _add_address(inner, index, address)
            for version in {ipaddress.ip_address(each).version for each in addresses}:
                _route(inner, index, _of_version(version, self._endpoints))
        return vm

    def _boot(self, name: str) -> int:
        holder = self.start(
            ["unshare", "--net", "--uts", "--", sys.executable, "-c", _HOLD, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert holder.stdout is not None
        assert holder.stdout.readline() == "up\n", f"VM {name!r} did not come up"
        return holder.pid


def _of_version(version: int, addresses: Sequence[str]) -> list[str]:
    return [each for each in addresses if ipaddress.ip_address(each).version == version]


def _raise(ip: Any, link: str) -> int:
    index: int = ip.link_lookup(ifname=link)[0]
    ip.link("set", index=index, state="up")
    return index


def _add_address(ip: Any, index: int, address: str) -> None:
    parsed = ipaddress.ip_address(address)
    flags = _NO_DUPLICATE_DETECTION if parsed.version == 6 else 0
    ip.addr("add", index=index, address=address, prefixlen=parsed.max_prefixlen, flags=flags)


def _route(ip: Any, index: int, addresses: Sequence[str]) -> None:
    for address in addresses:
        ip.route("add", dst=str(ipaddress.ip_network(address)), oif=index)
