"""The program as its users start it."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import AbstractContextManager
from http.client import HTTPResponse
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairwarning.cli.main import main
from fairwarning.cli.ready_message import shown_store
from tests.support.patience import HANG_S
from tests.support.processes import running

PROGRAM = [sys.executable, "-m", "fairwarning"]
ANY_PORT = ("--metadata", "127.0.0.1:0", "--control", "127.0.0.1:0")
PATH = "/metadata/scheduledevents?api-version=2020-07-01"


def serve_process(
    *arguments: str, **environment: str
) -> AbstractContextManager[subprocess.Popen[str]]:
    command = [*PROGRAM, "serve", *ANY_PORT, *arguments]
    return running(command, stdout=subprocess.PIPE, env={**os.environ, **environment})


def ready(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said = json.loads(process.stdout.readline())
    assert said["ready"] is True
    return str(said["metadata"][0])


def poll(url: str, name: str = "web-0") -> HTTPResponse:
    request = urllib.request.Request(f"{url}/vm/{name}{PATH}", headers={"Metadata": "true"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    found = opener.open(request, timeout=HANG_S)
    assert isinstance(found, HTTPResponse)
    return found


def ask(url: str, name: str = "web-0") -> dict[str, object]:
    with poll(url, name) as answer:
        found: dict[str, object] = json.load(answer)
    return found


def test_a_virtual_clock_on_a_kept_store_is_warned_of(tmp_path: Path) -> None:
    for store, is_warned in ((f"sqlite:///{tmp_path}/fw.db", True), ("memory:", False)):
        command = [*PROGRAM, "serve", *ANY_PORT, "--clock", "virtual", "--store", store, "--json",
                   "--no-azure"]  # fmt: skip
        with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            ready(process)
            process.send_signal(signal.SIGTERM)
            _, told = process.communicate(timeout=HANG_S)
        assert ("use --store memory:" in told) == is_warned


def tag(url: str) -> str:
    """It names the incarnation and, behind a dash, the activation."""
    with poll(url) as answer:
        return str(answer.headers["ETag"])


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
        env={**os.environ, **environment},
    )


def refused(*arguments: str) -> subprocess.CompletedProcess[str]:
    """In this process: what a server says that does not come up."""
    result = CliRunner().invoke(main, arguments)
    assert isinstance(result.exception, SystemExit), result.exception
    # Python prints a text that a program exits with; nobody does here.
    exits_with = result.exception.code
    said = result.stderr + (f"{exits_with}\n" if isinstance(exits_with, str) else "")
    return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, said)


def test_it_serves_a_starter_fleet_with_no_configuration_at_all(tmp_path: Path) -> None:
    with serve_process(HOME=str(tmp_path), XDG_DATA_HOME=str(tmp_path / "data")) as process:
        assert process.stdout is not None
        said = []
        while not (line := process.stdout.readline()).startswith("ready "):
            said.append(line)
        url = line.split()[1]
        assert any("starter fleet" in line for line in said)
        curl = next(line for line in said if "curl" in line)
        assert f"{url}/vm/web-0{PATH}" in curl
        assert ask(url) == {"DocumentIncarnation": 1, "Events": []}
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_S) == 0
    assert (tmp_path / "data/fairwarning/fairwarning.db").exists()


def test_a_restart_keeps_the_fleet_and_the_number(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/fw.db"
    for _ in range(2):
        with serve_process("--store", store, "--json") as process:
            assert ask(ready(process)) == {"DocumentIncarnation": 1, "Events": []}
            process.kill()
            process.wait()


def test_an_empty_fleet_knows_nobody() -> None:
    with serve_process("--store", "memory:", "--empty", "--json") as process:
        url = ready(process)
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(url)
        assert refused.value.code == 404
        refused.value.close()


def test_a_port_that_is_taken_is_one_clear_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = refused("serve", "--store", "memory:", "--control", "127.0.0.1:0",
                       "--metadata", f"127.0.0.1:{port}")  # fmt: skip
    assert done.returncode == 1
    assert "choose another address with --metadata" in done.stderr
    assert f"127.0.0.1:{port}" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_store_in_use_is_one_clear_line(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/fw.db"
    with serve_process("--store", store, "--json") as process:
        ready(process)
        done = run("serve", "--store", store, *ANY_PORT)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "fw.db" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--store", "mysql://x"], 1, "postgresql://"),
        (["--store", "sqlite:////proc/nope/fw.db"], 1, "fw.db"),
        (["--store", "postgresql://nobody@127.0.0.1:99999/x"], 1, "PostgreSQL"),
        (["--metadata", "nonsense"], 2, "HOST:PORT"),
        (["--metadata", "127.0.0.1:99999"], 2, "HOST:PORT"),
        (["--metadata", "no.such.host.invalid:80", "--store", "memory:"], 1, "--metadata"),
        (["--activation-delay", "121"], 2, "120"),
        (["--idle-after", "soon"], 2, "like 30s"),
        (["--idle-after", "5s"], 2, "from 1m"),
        (["--lease", "soon"], 2, "like 30s"),
        (["--lease", "4s"], 2, "from 5s"),
        (["--operations-max", "-1"], 2, "--operations-max"),
        (["--unknown-version", "500"], 2, "404"),
    ],
)
def test_bad_arguments_say_what_to_do(arguments: list[str], code: int, words: str) -> None:
    done = refused("serve", *arguments)
    assert done.returncode == code, done.stderr
    assert words in done.stderr


def test_the_engines_limits_can_be_set(tmp_path: Path) -> None:
    with serve_process(
        "--store", "memory:", "--clock", "virtual", "--json", "--idle-after", "1h",
        "--operations-max", "1", HOME=str(tmp_path),
    ) as process:  # fmt: skip
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())

        def command(*words: str) -> subprocess.CompletedProcess[str]:
            return run(*words, FAIRWARNING_URL=said["control"])

        before = tag(said["metadata"][0])
        assert command("restart", "web-0").returncode == 0
        assert "at once" in command("restart", "web-1").stderr
        assert command("clock", "advance", "30m").returncode == 0
        assert tag(said["metadata"][0]).partition("-")[2] == before.partition("-")[2]
        assert command("clock", "advance", "2h").returncode == 0
        assert tag(said["metadata"][0]).partition("-")[2] != before.partition("-")[2]


def test_the_lease_of_driver_work_can_be_set(tmp_path: Path) -> None:
    with serve_process(
        "--store", "memory:", "--clock", "virtual", "--json", "--lease", "7s", HOME=str(tmp_path)
    ) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["control"]
        assert (
            run("schedule", "Reboot", "web-0", "--notice", "0s", FAIRWARNING_URL=url).returncode
            == 0
        )
        assert run("clock", "advance", "1s", FAIRWARNING_URL=url).returncode == 0
        entries = json.loads(run("history", "--json", FAIRWARNING_URL=url).stdout)["entries"]
    given = next(each for each in entries if each["kind"] == "HandedOver")
    started = next(each for each in entries if each["kind"] == "Started")
    assert given["data"]["lease_until_ms"] - started["data"]["at_ms"] == 7_000


def test_help_has_examples() -> None:
    for command in (["--help"], ["serve", "--help"], ["demo", "--help"]):
        done = run(*command)
        assert done.returncode == 0
        assert "Example" in done.stdout


def test_the_demo_is_shown_to_people_and_to_scripts() -> None:
    told = run("demo").stdout
    assert told.index("drains") < told.index("approves") < told.index("The reboot is over")
    lines = [json.loads(line) for line in run("demo", "--json").stdout.splitlines()]
    incarnations = [each["document"]["DocumentIncarnation"] for each in lines if "document" in each]
    assert incarnations == [1, 2, 3, 4]


def test_the_store_is_named_without_its_secrets() -> None:
    assert shown_store("postgresql://me:secret@db.example/fw?password=secret") == (
        "postgresql://db.example/fw"
    )
    assert shown_store("sqlite:////srv/a@b.db") == "/srv/a@b.db"
