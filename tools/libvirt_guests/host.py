"""A host: network, host name and files of its own, a bridge with the endpoint, and a libvirtd.

The libvirtd of the machine itself, if there is one, is neither used nor noticed: what a libvirtd
writes below /etc, /run and /var goes to a file system in memory that ends with the host.
"""

import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import libvirt
from pyroute2 import netns  # type: ignore[import-untyped]

from tests.support.patience import HANG_S
from tests.support.processes import running
from tools.debian_packages import program

R = TypeVar("R")
ENDPOINT = "169.254.169.254"
BRIDGE = "br0"
ROUTER = "10.0.0.1"
_BRIDGE_MAC = "52:54:00:fe:00:01"
"""All hosts have the same, so a guest that was moved finds the endpoint of its new host at once."""
_BETWEEN = "hosts"
"""The bridge between the hosts, for migrations."""
_LIBVIRTD = """
unix_sock_dir = "{folder}"
unix_sock_rw_perms = "0777"
auth_unix_rw = "none"
auth_unix_ro = "none"
host_uuid = "{uuid}"
log_outputs = "3:stderr"
"""
_QEMU = """
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
security_driver = "none"
namespaces = []
cgroup_controllers = []
stdio_handler = "file"
migration_host = "{address}"
migration_address = "{address}"
"""
_HOLD = """
set -eu
hostname {name}
mount -t tmpfs none {private}
for folder in etc var; do
    mkdir {private}/$folder {private}/$folder-work
    layers=lowerdir=/$folder,upperdir={private}/$folder,workdir={private}/$folder-work
    mount -t overlay -o $layers overlay /$folder
done
# libvirtd asks for the user of its Debian package, whoever runs the guests.
grep -q ^libvirt-qemu: /etc/passwd || echo libvirt-qemu:x:64055:0::/:/bin/false >>/etc/passwd
grep -q ^libvirt-qemu: /etc/group || echo libvirt-qemu:x:64055: >>/etc/group
mkdir -p /etc/libvirt
cp {folder}/qemu.conf /etc/libvirt/qemu.conf
mount -t tmpfs none /run
# Without control groups, libvirt makes none, so none is left behind.
mount -t tmpfs none /sys/fs/cgroup
echo up
exec cat
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    name: str
    folder: Path
    pid: int
    """A process that holds the host's namespaces."""

    @property
    def uri(self) -> str:
        return f"qemu+unix:///system?socket={self.folder}/libvirt-sock"

    def command(self, argv: Sequence[str]) -> list[str]:
        """Returns the command that runs `argv` on this host."""
        return ["nsenter", f"--target={self.pid}", "--net", "--uts", "--mount", "--", *argv]

    def run(self, words: str) -> str:
        done = subprocess.run(  # noqa: S603
            self.command(shlex.split(words)), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{self.name}: {words}: {done.stderr.strip()}"
        return done.stdout

    def call(self, function: Callable[[], R]) -> R:
        """Calls a function on a thread whose sockets are in this host's network."""

        def enter() -> R:
            netns.setns(f"/proc/{self.pid}/ns/net", flags=0)
            return function()

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(enter).result()


@contextmanager
def hosts(folder: Path, names: Sequence[str]) -> Iterator[list[Host]]:
    """Makes hosts that reach each other, each with a libvirtd and a bridge for guests."""
    with ExitStack() as closing:
        _ip(f"link add {_BETWEEN} type bridge")
        _ip(f"link set {_BETWEEN} up")
        made = []
        for number, name in enumerate(names):
            host = closing.enter_context(_namespaces(folder / name, name, f"10.9.0.{number + 2}"))
            _plug(host, number)
            closing.enter_context(_libvirtd(host, number))
            made.append(host)
        yield made


@contextmanager
def _namespaces(folder: Path, name: str, address: str) -> Iterator[Host]:
    private = folder / "private"
    private.mkdir(parents=True)
    (folder / "qemu.conf").write_text(_QEMU.format(address=address))
    script = _HOLD.format(name=name, private=private, folder=folder)
    with running(
        ["unshare", "--net", "--uts", "--mount", "--propagation=private", "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "up\n", f"the host {name} could not be made"
        yield Host(name=name, folder=folder, pid=holder.pid)


def _plug(host: Host, number: int) -> None:
    inner = f"host{number}"
    _ip(f"link add {inner} type veth peer name up0 netns {host.pid}")
    _ip(f"link set {inner} master {_BETWEEN} up")
    for words in (
        "link set lo up",
        f"address add 10.9.0.{number + 2}/24 dev up0",
        "link set up0 up",
        f"link add {BRIDGE} address {_BRIDGE_MAC} type bridge",
        f"address add {ROUTER}/24 dev {BRIDGE}",
        f"address add {ENDPOINT}/32 dev {BRIDGE}",
        f"link set {BRIDGE} up",
    ):
        host.run(f"{program('ip')} {words}")


@contextmanager
def _libvirtd(host: Host, number: int) -> Iterator[None]:
    uuid = f"00000000-0000-4000-8000-{number + 1:012}"
    config = host.folder / "libvirtd.conf"
    config.write_text(_LIBVIRTD.format(folder=host.folder, uuid=uuid))
    log = host.folder / "libvirtd.log"
    argv = [program("libvirtd"), "--config", str(config), "--pid-file", str(host.folder / "pid")]
    with log.open("w") as errors, running(host.command(argv), stderr=errors) as daemon:
        ends_s = time.monotonic() + HANG_S
        while not _answers(host.uri):
            assert daemon.poll() is None, f"libvirtd ended: {log.read_text()}"
            assert time.monotonic() < ends_s, f"libvirtd does not answer: {log.read_text()}"
            time.sleep(0.05)
        yield


def _answers(uri: str) -> bool:
    libvirt.registerErrorHandler(lambda _, __: None, None)
    try:
        libvirt.open(uri).close()
    except libvirt.libvirtError:
        return False
    return True


def _ip(words: str) -> None:
    done = subprocess.run(  # noqa: S603
        [program("ip"), *words.split()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"ip {words}: {done.stderr.strip()}"


def new_machine() -> list[str]:
    """Returns the start of a command that runs in namespaces of its own. All processes that it
    leaves end with it.
    """
    return [
        "unshare",
        "--mount",
        "--propagation=private",
        "--net",
        "--uts",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]
