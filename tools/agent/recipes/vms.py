"""VMs with processes, folders and a host name of their own, so that daemons run as installed.

Theory of operation. Each VM of the rig gets one more process, which is the first of a new process
namespace and has a mount namespace of its own. There the folders that daemons write to are empty,
and /etc/hosts has the names of all VMs. So each program runs with its usual paths and ports, and
none outlives the check: when the first process of a process namespace ends, however it ends, the
kernel kills all others, also those that made themselves daemons.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

from tests.support.patience import HANG_S
from tests.support.processes import clean_environment, running
from tests.support.vms import Rig
from tools.agent.balancer import connect_all
from tools.debian_packages import SYSTEM_PATH

_EMPTY = ("/etc/munge", "/etc/slurm", "/run", "/usr/local/sbin", "/var/lib", "/var/log")
"""The folders that each VM has for itself."""
_HOLD = """
import signal, subprocess, sys
hosts, *folders = sys.argv[1:]
for folder in folders:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", folder], check=True)
subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)
# The first process gets the orphans of all others; so none of them stays as a zombie.
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("up", flush=True)
sys.stdin.read()
"""


class DaemonVm:
    """A VM on which daemons run."""

    def __init__(self, rig: Rig, name: str, holder: "Popen[str]") -> None:
        self._rig = rig
        self._started: list[Popen[str]] = []
        self.name = name
        self.address = rig.vms[name].addresses[0]
        assert holder.stdout is not None
        assert holder.stdout.readline() == "up\n", f"VM {name!r} did not come up"
        [self._pid] = Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()

    def command(self, argv: Sequence[str]) -> list[str]:
        """Returns the command that runs `argv` on this VM."""
        enter = ["nsenter", f"--target={self._pid}", "--mount", "--net", "--uts", "--pid"]
        return [*enter, "--", *argv]

    def path(self, path: str) -> Path:
        """Returns where this process finds a file of the VM."""
        return Path(f"/proc/{self._pid}/root{path}")

    def write(self, path: str, content: str, mode: int = 0o644) -> None:
        file = self.path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        file.chmod(mode)

    def start(self, argv: Sequence[str], **options: object) -> "Popen[str]":
        """Starts a process that ends with the VM; what it prints goes to a log of the VM."""
        with self.path(f"/var/log/{Path(argv[0]).name}.out").open("a") as log:
            options = {"stdout": log, "stderr": log, "env": environment(), **options}
            started = self._rig.start(self.command(argv), stdin=DEVNULL, **options)
        self._started.append(started)
        return started

    def run(self, *argv: str) -> "subprocess.CompletedProcess[str]":
        """Runs `argv` to its end and returns what it printed, also if it failed."""
        return subprocess.run(  # noqa: S603
            self.command(argv), capture_output=True, text=True, check=False, env=environment(),
            stdin=DEVNULL, timeout=HANG_S,
        )  # fmt: skip

    def wait_until_it_ended(self) -> None:
        """Waits for the programs of a VM that is gone.

        Nobody else does where the first process of the system never waits for orphans.
        """
        for each in self._started:
            each.wait(HANG_S)

    def ask(self, *argv: str) -> str:
        """Returns what a command prints, which must work."""
        done = self.run(*argv)
        said = f"{done.stdout}{done.stderr}".strip()
        assert done.returncode == 0, f"{self.name}: {' '.join(argv)} failed: {said}"
        return done.stdout.strip()


def environment() -> Mapping[str, str]:
    return {**clean_environment(), "PATH": SYSTEM_PATH}


@contextmanager
def daemon_vms(rig: Rig, folder: Path) -> Iterator[dict[str, DaemonVm]]:
    """Makes VMs of the rig's, which can reach each other, and ends all that runs on them."""
    connect_all(rig)
    lines = [f"{each.addresses[0]} {name}\n" for name, each in rig.vms.items()]
    hosts = folder / "hosts"
    hosts.write_text("".join(["127.0.0.1 localhost\n", *lines]))
    folders = [each for each in _EMPTY if Path(each).is_dir()]
    private = ["unshare", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child", "--"]
    hold = [*private, sys.executable, "-c", _HOLD, str(hosts), *folders]
    vms: dict[str, DaemonVm] = {}
    try:
        with ExitStack() as holding:
            for name, each in rig.vms.items():
                holder = running(each.command(hold), stdin=PIPE, stdout=PIPE)
                vms[name] = DaemonVm(rig, name, holding.enter_context(holder))
            yield vms
    finally:
        for vm in vms.values():
            vm.wait_until_it_ended()


def wait_until(holds: Callable[[], object], what: str) -> None:
    """Waits until `holds()` is true. The limit only ends a hang."""
    ends_s = time.monotonic() + HANG_S
    while not holds():
        assert time.monotonic() < ends_s, f"{what} did not happen"
        time.sleep(0.1)
