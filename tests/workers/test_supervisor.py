"""`fairwarning serve --workers` as processes that are killed, stopped and loaded anew."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairwarning.cli.main import main
from tests.support.patience import HANG_S
from tests.support.processes import running

PATH = "/vm/db/metadata/scheduledevents?api-version=2020-07-01"
ANY_PORT = ["--metadata", "127.0.0.1:0", "--control", "127.0.0.1:0", "--no-azure"]


@dataclass
class Served:
    process: subprocess.Popen[str]
    metadata: str
    control: str
    log: Path

    def children(self) -> list[int]:
        """The processes of the supervisor, oldest first: the engine, then the workers."""
        found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(each) for each in found.split()]

    def get(self, address: str, path: str) -> tuple[int, bytes]:
        client = http.client.HTTPConnection(address, timeout=HANG_S)
        client.request("GET", path, headers={"Metadata": "true"})
        answer = client.getresponse()
        body = answer.read()
        client.close()
        return answer.status, body

    def poll(self) -> tuple[int, bytes]:
        return self.get(self.metadata, PATH)


@contextmanager
def served(folder: Path, *options: str) -> Iterator[Served]:
    log = folder / "log"
    store = f"sqlite:///{folder / 'fw.db'}"
    command = [sys.executable, "-m", "fairwarning", "serve", "--json", "--store", store]
    with (
        open(log, "a") as errors,
        running(
            [*command, *ANY_PORT, "--workers", "2", *options], stdout=subprocess.PIPE, stderr=errors
        ) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, log.read_text()
        ready = json.loads(line)
        metadata, control = (url.split("//")[1] for url in (ready["metadata"][0], ready["control"]))
        yield Served(process, metadata, control, log)


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_what_is_killed_is_started_again_and_no_new_connection_fails(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        assert server.poll()[0] == 200
        for number in range(3):
            victim = server.children()[0]
            os.kill(victim, signal.SIGKILL)
            until(lambda victim=victim: is_gone(victim))  # type: ignore[misc]
            assert [server.poll()[0] for _ in range(10)] == [200] * 10, number
        until(lambda: len(server.children()) == 3)
        assert server.get(server.control, "/healthz") == (200, b"ok\n")
        assert "it is started again" in server.log.read_text()


def test_polls_go_on_while_the_engine_cannot_start_again(tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    with served(tmp_path) as server:
        assert server.poll()[0] == 200
        files = [*tmp_path.glob("fw.db*")]
        for file in files:
            file.rename(away / file.name)
        (tmp_path / "fw.db").write_text("this is no database")
        os.kill(server.children()[0], signal.SIGKILL)
        until(lambda: "the engine cannot start" in server.log.read_text())
        assert server.poll()[0] == 200
        for file in files:
            (away / file.name).replace(file)
        assert server.get(server.control, "/healthz") == (200, b"ok\n")


def test_the_end_of_the_supervisor_ends_all(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        children = server.children()
        assert len(children) == 3
        server.process.terminate()
        assert server.process.wait(HANG_S) == 0
        assert all(map(is_gone, children))
    with served(tmp_path) as server:
        children = server.children()
        server.process.kill()
        until(lambda: all(map(is_gone, children)))


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fairwarning", "serve", "--workers", "1", *ANY_PORT]
    ended = subprocess.run(
        [*command, "--store", "sqlite:////proc/none/fw.db"],
        capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    assert ended.stderr.startswith("fairwarning: cannot work on /proc/none/fw.db")
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--clock", "virtual"], "needs the system's clock"),
        (["--store", "memory:"], "outlives a process"),
    ],
)
def test_workers_need_a_real_clock_and_a_store(options: list[str], text: str) -> None:
    ended = CliRunner().invoke(main, ["serve", "--workers", "1", *options])
    assert ended.exit_code == 2
    assert text in ended.stderr


def poll_all_the_time(address: str, *, keeps: bool, ended: threading.Event, bad: list[str]) -> None:
    """Poll on one connection as long as the server keeps it, or on a new one each time."""
    client: http.client.HTTPConnection | None = None
    while not ended.is_set():
        client = client or http.client.HTTPConnection(address, timeout=HANG_S)
        try:
            headers = {"Metadata": "true"} | ({} if keeps else {"Connection": "close"})
            client.request("GET", PATH, headers=headers)
            answer = client.getresponse()
            answer.read()
            if answer.status != 200:
                bad.append(str(answer.status))
            if answer.getheader("Connection") == "close" or not keeps:
                client.close()
                client = None
        except Exception as error:
            bad.append(repr(error))
            client = None
    if client is not None:
        client.close()


def test_a_reload_replaces_all_processes_and_fails_no_poll(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        before = server.children()
        ended, bad = threading.Event(), list[str]()
        pollers = [
            threading.Thread(
                target=poll_all_the_time,
                args=(server.metadata,),
                kwargs={"keeps": keeps, "ended": ended, "bad": bad},
            )
            for keeps in (True, True, False)
        ]
        for each in pollers:
            each.start()
        server.process.send_signal(signal.SIGHUP)
        until(lambda: not set(before) & set(server.children()) and len(server.children()) == 3)
        ended.set()
        for each in pollers:
            each.join()
        assert bad == []
        assert server.get(server.control, "/healthz") == (200, b"ok\n")


def test_a_reload_with_a_broken_configuration_changes_nothing(tmp_path: Path) -> None:
    config = tmp_path / "serve.toml"
    config.write_text('rate = "5"\n')
    with served(tmp_path, "--config", str(config)) as server:
        before = server.children()
        config.write_text('rat = "5"\n')
        server.process.send_signal(signal.SIGHUP)
        until(lambda: "the reload is given up" in server.log.read_text())
        assert "did you mean 'rate'?" in server.log.read_text()
        assert server.children() == before
        assert server.poll()[0] == 200
