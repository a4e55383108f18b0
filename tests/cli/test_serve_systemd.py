"""`fairwarning serve` as a service: what systemd hears of it, and the sockets that it keeps."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.patience import HANG_S
from tests.support.processes import clean_environment, running

PATH = "/vm/db/metadata/scheduledevents?api-version=2020-07-01"
WITH_FDS = """
import os, sys
count = int(os.environ["LISTEN_FDS"])
high = [os.dup2(int(fd), 100 + n) for n, fd in enumerate(sys.argv[1].split(",") if count else [])]
for number, fd in enumerate(high):
    os.dup2(fd, 3 + number)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
"""A program that gives file descriptors to the one that it becomes, as systemd does."""


class FakeSystemd:
    """Hears what a service says, and keeps its sockets from one start to the next."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self.address = str(folder / "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.address)
        self._socket.settimeout(HANG_S)
        self.kept: dict[str, int] = {}

    def close(self) -> None:
        self._socket.close()
        for fd in self.kept.values():
            os.close(fd)

    def hear(self) -> dict[str, str]:
        """Return the next message that is not about a socket."""
        while True:
            said, fds, _, _ = socket.recv_fds(self._socket, 4_096, 1)
            states = dict(line.split("=", 1) for line in said.decode().splitlines())
            if "FDSTORE" in states:
                # systemd keeps one copy of each socket.
                old = self.kept.setdefault(states["FDNAME"], fds[0])
                if old != fds[0]:
                    os.close(fds[0])
            elif "FDSTOREREMOVE" in states:
                os.close(self.kept.pop(states["FDNAME"]))
            else:
                return states

    def hear_until(self, name: str) -> dict[str, str]:
        while name not in (states := self.hear()):
            pass
        return states

    @contextmanager
    def start(self, *options: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
        store = f"sqlite:///{self._folder / 'fw.db'}"
        command = ["-m", "fairwarning", "serve", "--json", "--store", store, "--no-azure"]
        listen = ["--metadata", "127.0.0.1:0", "--control", "127.0.0.1:0"]
        fds = ",".join(map(str, self.kept.values()))
        given = {
            "NOTIFY_SOCKET": self.address,
            "LISTEN_FDS": str(len(self.kept)),
            "LISTEN_FDNAMES": ":".join(self.kept),
        }
        with (
            open(self._folder / "log", "a") as log,
            running(
                [sys.executable, "-c", WITH_FDS, fds, *command, *listen, *options],
                stdout=subprocess.PIPE,
                stderr=log,
                pass_fds=[*self.kept.values()],
                env={**clean_environment(), **given, **environment},
            ) as process,
        ):
            yield process

    def log(self) -> str:
        return (self._folder / "log").read_text()


@contextmanager
def fake_systemd(folder: Path) -> Iterator[FakeSystemd]:
    with contextlib.closing(FakeSystemd(folder)) as systemd:
        yield systemd


def poll(address: str) -> int:
    client = http.client.HTTPConnection(address, timeout=HANG_S)
    client.request("GET", PATH, headers={"Metadata": "true"})
    status = client.getresponse().status
    client.close()
    return status


def metadata_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    url: str = json.loads(process.stdout.readline())["metadata"][0]
    return url.removeprefix("http://")


def test_one_process_says_that_it_is_ready_and_stops_and_refuses_a_reload(tmp_path: Path) -> None:
    with fake_systemd(tmp_path) as systemd, systemd.start() as process:
        ready = systemd.hear()
        address = metadata_of(process)
        assert ready["READY"] == "1"
        assert ready["STATUS"].startswith(f"ready http://{address} control http://")
        process.send_signal(signal.SIGHUP)
        while "without --workers there is no reload" not in systemd.log():
            assert poll(address) == 200
        process.terminate()
        assert systemd.hear() == {"STOPPING": "1"}
        assert process.wait(HANG_S) == 0


def test_the_supervisor_speaks_for_all_its_processes(tmp_path: Path) -> None:
    config = tmp_path / "serve.toml"
    config.write_text("workers = 1\n")
    with (
        fake_systemd(tmp_path) as systemd,
        systemd.start("--config", str(config)) as process,
    ):
        assert "READY" in systemd.hear()
        process.send_signal(signal.SIGHUP)
        assert "RELOADING" in systemd.hear()
        # The old engine stops meanwhile, and must not say that the service does.
        assert "READY" in systemd.hear()
        config.write_text("workers = -1\n")
        process.send_signal(signal.SIGHUP)
        assert "RELOADING" in systemd.hear()
        assert "READY" in systemd.hear()
        process.terminate()
        assert systemd.hear() == {"STOPPING": "1"}


def test_the_watchdog_hears_of_one_process_and_of_a_supervisor(tmp_path: Path) -> None:
    for options in ([], ["--workers", "1"]):
        with (
            fake_systemd(tmp_path / str(len(options))) as systemd,
            systemd.start(*options, WATCHDOG_USEC="100000"),
        ):
            systemd.hear_until("READY")
            for _ in range(3):
                assert systemd.hear() == {"WATCHDOG": "1"}


def test_a_connection_between_two_starts_waits_for_the_second(tmp_path: Path) -> None:
    with fake_systemd(tmp_path) as systemd:
        with systemd.start("--workers", "2") as process:
            systemd.hear_until("READY")
            address = metadata_of(process)
            process.kill()
        answers: list[int] = []
        asking = threading.Thread(target=lambda: answers.append(poll(address)))
        asking.start()
        with systemd.start("--workers", "2") as process:
            systemd.hear_until("READY")
            assert metadata_of(process) == address
            assert poll(address) == 200
            asking.join(HANG_S)
            assert answers == [200]
