"""The agent as a process, and the commands around it, with commands of the shell as actions."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairwarning.agent.cli.main import agent
from fairwarning.agent.config.reader import read_file
from fairwarning.agent.records import Progress
from fairwarning.agent.state_file import StateFile, read_state
from fairwarning.testing import Server
from tests.support.patience import HANG_S

CONFIG = """\
endpoint = "{url}"
state = "{folder}/state.json"
listen = "127.0.0.1:0"

[[rule]]
name = "reboots"
types = ["Reboot"]

[[rule.scheduled]]
run = "touch {folder}/drained; cat > {folder}/event.json"
undo = "rm {folder}/drained"

[[rule.finished]]
run = ["touch", "{folder}/{{event.type}}-{{me}}"]
"""


@pytest.fixture
def file(fairwarning: Server, tmp_path: Path) -> Path:
    path = tmp_path / "agent.toml"
    path.write_text(CONFIG.format(url=fairwarning.vm("web-0").url, folder=tmp_path))
    return path


class Process:
    """A real one; its log is read line by line, so nothing sleeps."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fairwarning", "agent", *arguments],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self.said: list[str] = []

    def until(self, text: str) -> str:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line.strip())
            if text in line:
                return line
        raise AssertionError(f"it ended without saying {text!r}: {self.said}")

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        assert self.process.stderr is not None
        self.said += [line.strip() for line in self.process.stderr]
        self.process.stderr.close()
        return self.process.wait(HANG_S)


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    started: list[Process] = []
    yield started
    for each in started:
        if each.process.poll() is None:
            each.end(signal.SIGKILL)
        assert each.process.stderr is not None
        each.process.stderr.close()


def test_a_process_drains_approves_is_killed_and_undoes(
    fairwarning: Server, file: Path, processes: list[Process]
) -> None:
    first = Process("--config", str(file), "--log-format", "json")
    processes.append(first)
    watching = json.loads(first.until("watching"))
    assert (watching["level"], watching["name"]) == ("info", "web-0")
    planned = fairwarning.schedule("Reboot", "web-0")
    first.until("is started")
    assert [each.by for each in fairwarning.approvals()] == ["instance:web-0"]
    assert (file.parent / "drained").exists()
    heard = json.loads((file.parent / "event.json").read_text())
    assert (heard["event"]["EventId"], heard["me"], heard["purpose"]) == (planned.id, "web-0", "do")
    first.end(signal.SIGKILL)
    fairwarning.advance(minutes=5)
    second = Process("--config", str(file))
    processes.append(second)
    second.until("all is done and undone")
    assert not (file.parent / "drained").exists()
    assert (file.parent / "Reboot-web-0").exists()
    assert second.end() == 0


def test_a_stop_keeps_the_state_and_systemd_is_told(
    fairwarning: Server, file: Path, processes: list[Process], tmp_path: Path
) -> None:
    file.write_text(file.read_text().replace("[[rule.sch", 'approve.when = "never"\n[[rule.sch'))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(HANG_S)
        process = Process(
            "--config", str(file), NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="60000000"
        )
        processes.append(process)
        told = {systemd.recv(1000).decode() for _ in range(2)}
        assert told == {"READY=1\nSTATUS=watching", "WATCHDOG=1"}
        planned = fairwarning.schedule("Reboot", "web-0")
        process.until("done: run")
        assert process.end() == 0
        told = set()
        while "STOPPING=1\nSTATUS=stopping" not in told:
            told.add(systemd.recv(1000).decode())
    assert (tmp_path / "drained").exists(), "what is drained stays so"
    record = read_state(tmp_path / "state.json").records[planned.id]
    assert record.action_states["scheduled/0"].progress is Progress.DONE


def test_sighup_reads_the_file_again_if_it_is_in_order(
    fairwarning: Server, file: Path, processes: list[Process]
) -> None:
    process = Process("--config", str(file))
    processes.append(process)
    process.until("watching")
    good = file.read_text()
    file.write_text(good + "oops")
    process.process.send_signal(signal.SIGHUP)
    assert "the old one stays" in process.until("not reloaded")
    file.write_text(good.replace('types = ["Reboot"]', 'types = ["Freeze"]'))
    process.process.send_signal(signal.SIGHUP)
    process.until("was reloaded")
    fairwarning.schedule("Reboot", "web-0")
    process.until("no rule fits")
    assert process.end() == 0


TAGGED = {"test": True, "vm": [{"name": "web-0", "tags": {"role": "front"}}]}


@pytest.mark.fairwarning(fleet=TAGGED)
def test_tags_that_a_new_config_asks_for_are_known_also_if_the_name_was_given(
    fairwarning: Server, file: Path, processes: list[Process]
) -> None:
    named = 'name = "web-0"\n' + file.read_text()
    file.write_text(named)
    process = Process("--config", str(file))
    processes.append(process)
    process.until("watching")
    file.write_text(named.replace('types = ["Reboot"]', 'tags = { role = "front*" }'))
    process.process.send_signal(signal.SIGHUP)
    process.until("was reloaded")
    fairwarning.schedule("Freeze", "web-0")
    assert "rule 'reboots'" in process.until("is scheduled")
    assert process.end() == 0


def test_sighup_before_the_service_answers_does_not_end_the_agent(
    file: Path, processes: list[Process]
) -> None:
    lines = file.read_text().splitlines()
    nowhere = ['endpoint = "http://127.0.0.1:1"' if "endpoint" in each else each for each in lines]
    file.write_text("\n".join(nowhere))
    process = Process("--config", str(file))
    processes.append(process)
    process.until("cannot ask who this VM is")
    process.process.send_signal(signal.SIGHUP)
    process.until("not reloaded")
    assert process.end() == 0


def test_a_second_agent_is_kept_out(
    fairwarning: Server, file: Path, processes: list[Process]
) -> None:
    state = StateFile(file.parent / "state.json")
    state.open()
    second = Process("--config", str(file))
    processes.append(second)
    second.until("another agent uses")
    assert second.process.wait(HANG_S) == 1
    state.close()


def test_once_does_what_is_due_and_ends(fairwarning: Server, file: Path) -> None:
    fairwarning.vm("web-0").document()
    planned = fairwarning.schedule("Reboot", "web-0")
    done = CliRunner().invoke(agent, ["--config", str(file), "--once"])
    assert (done.exit_code, (file.parent / "drained").exists()) == (0, True)
    assert fairwarning.event(planned.id).phase == "started"
    fairwarning.advance(minutes=5)
    done = CliRunner().invoke(agent, ["--config", str(file), "--once"])
    assert (done.exit_code, (file.parent / "drained").exists()) == (0, False)


def test_once_asks_again_before_it_believes_a_document_that_contradicts_the_last(
    fairwarning: Server, file: Path
) -> None:
    """A service that has lost all that it knew counts its documents from 1 again."""
    fairwarning.vm("web-0").document()
    fairwarning.cancel(fairwarning.schedule("Freeze", "web-0"))
    fairwarning.schedule("Reboot", "web-0")
    done = CliRunner().invoke(agent, ["--config", str(file), "--once"])
    assert (done.exit_code, (file.parent / "drained").exists()) == (0, True)
    with Server() as other:
        text = re.sub('endpoint = ".*"', f'endpoint = "{other.vm("web-0").url}"', file.read_text())
        file.write_text(text)
        done = CliRunner().invoke(agent, ["--config", str(file), "--once"])
        assert len(other.requests("web-0", kind="events")) > 1
    assert (done.exit_code, (file.parent / "drained").exists()) == (0, False)


def test_once_without_a_service_says_what_to_do(file: Path) -> None:
    text = re.sub('endpoint = ".*"', 'endpoint = "http://127.0.0.1:9"', file.read_text())
    file.write_text('name = "web-0"\n' + text)
    done = CliRunner().invoke(agent, ["--config", str(file), "--once"])
    assert done.exit_code == 1
    assert "set `endpoint`" in done.output


def test_a_dry_run_tells_and_does_nothing(
    fairwarning: Server, file: Path, processes: list[Process]
) -> None:
    process = Process("--config", str(file), "--dry-run")
    processes.append(process)
    process.until("watching")
    planned = fairwarning.schedule("Reboot", "web-0")
    process.until("would do: run")
    process.until("would approve")
    fairwarning.cancel(planned)
    process.until("would undo: run")
    assert process.end() == 0
    simulated_steps = ("doing:", "done:", "approving", "approved", "undoing:", "undone")
    assert not [line for line in process.said if any(word in line for word in simulated_steps)]
    assert fairwarning.event(planned.id).approvals == []
    assert not (file.parent / "drained").exists()
    assert not (file.parent / "state.json").exists()


def test_a_dry_run_goes_beside_the_service_that_has_the_address(
    fairwarning: Server, file: Path, processes: list[Process]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        file.write_text(file.read_text().replace("127.0.0.1:0", address))
        process = Process("--config", str(file), "--dry-run")
        processes.append(process)
        process.until("watching")
        assert process.end() == 0


def test_the_probes_of_a_process(fairwarning: Server, file: Path, processes: list[Process]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    file.write_text(file.read_text().replace("127.0.0.1:0", f"127.0.0.1:{port}"))
    process = Process("--config", str(file))
    processes.append(process)
    process.until("watching")
    fairwarning.wait_until(lambda: len(fairwarning.requests()) > 1)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        assert b"fairwarning_agent_polls_total" in answer.read()
    assert process.end() == 0


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(agent, arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def test_check_config(file: Path, tmp_path: Path) -> None:
    assert run("check-config", str(file)) == (
        0,
        f"{file} is in order. Its rules, of which the first that fits is taken:\n"
        "  reboots: 1 scheduled, 1 finished\n",
    )
    late = tmp_path / "late.toml"
    late.write_text('[[rule]]\nname = "all"\n[[rule]]\nname = "late"\ntypes = ["Reboot"]\n')
    code, said = run("check-config", str(late))
    warning = "rule 'late' is never taken: 'all' before it takes all that it could"
    assert (code, f"{late}: warning: {warning}\n" in said) == (0, True)
    assert json.loads(run("check-config", str(late), "--json")[1])["warnings"] == [warning]
    bad = tmp_path / "bad.toml"
    bad.write_text("margn = '1s'\n[[rule]]\ntypes = 5\n")
    assert run("check-config", "--config", str(bad)) == run("check-config", str(bad))
    code, said = run("check-config", str(bad))
    assert code == 1
    assert f"{bad}:1: unknown key `margn`; did you mean `margin`?" in said
    assert f"{bad}:3: `types` must be a list" in said
    code, said = run("check-config", str(bad), "--json")
    assert [each["line"] for each in json.loads(said)["mistakes"]] == [1, 3]
    code, said = run("--config", str(bad))
    assert code == 1
    assert said.startswith(f"{bad}:1: ")
    assert "and 1 more" in said
    assert run("check-config", str(tmp_path / "none.toml"))[0] == 1


def test_explain(fairwarning: Server, file: Path) -> None:
    code, said = run("explain", "--config", str(file), "--type", "reboot")
    assert code == 0
    assert "* reboots is taken: it concerns web-0; its type is Reboot" in said
    assert "scheduled: run" in said
    assert f"; undone by run 'rm {file.parent}/drained'" in said
    assert f"finished: run touch {file.parent}/Reboot-web-0" in said
    code, said = run("explain", "--config", str(file), "--type", "Freeze", "--json")
    assert json.loads(said)["events"][0]["rule"] is None
    assert "There is no event now" in run("explain", "--config", str(file))[1]
    fairwarning.schedule("Freeze", "web-0")
    code, said = run("explain", "--config", str(file))
    assert "its type is Freeze, not Reboot" in said
    raw = '{"EventId": "1", "EventType": "Reboot", "Resources": ["web-0"]}'
    assert "reboots is taken" in run("explain", "--config", str(file), "--event", raw)[1]
    assert run("explain", "--config", str(file), "--event", "{")[0] == 1


def test_explain_says_that_a_neighbours_event_is_never_approved(file: Path) -> None:
    text = file.read_text().replace('types = ["Reboot"]', 'concerns = "any"')
    file.write_text(text)
    asked = ("explain", "--config", str(file), "--type", "Reboot")
    assert "approve: success" in run(*asked)[1]
    said = run(*asked, "--resource", "web-1")[1]
    assert said.splitlines()[-1] == "approve: never, as it does not concern web-0"


@pytest.mark.fairwarning(fleet=TAGGED)
def test_explain_knows_the_tags_also_if_the_name_is_given(file: Path) -> None:
    file.write_text(file.read_text().replace('types = ["Reboot"]', 'tags = { role = "front" }'))
    code, said = run("explain", "--config", str(file), "--name", "web-0", "--type", "Freeze")
    assert (code, "reboots is taken" in said) == (0, True)
    text = re.sub('endpoint = ".*"', 'endpoint = "http://127.0.0.1:9"', file.read_text())
    file.write_text(text)
    code, said = run("explain", "--config", str(file), "--name", "web-0", "--type", "Freeze")
    assert (code, "nothing is known but its name" in said) == (0, True)


def test_test_runs_the_real_actions(file: Path) -> None:
    code, said = run("test", "reboot", "--config", str(file))
    assert code == 1
    assert "--yes" in said
    assert not (file.parent / "event.json").exists()
    code, said = run("test", "reboot", "--config", str(file), "--yes")
    assert (code, said.splitlines()[-1]) == (
        0, "all actions worked, and all that can be undone was undone",
    )  # fmt: skip
    assert (file.parent / "Reboot-web-0").exists()
    assert not (file.parent / "drained").exists()
    assert "no rule fits" in run("test", "freeze", "--config", str(file), "--yes")[1]
    file.write_text(file.read_text().replace("rm {", "false {").replace("rm /", "false /"))
    code, said = run("test", "reboot", "--config", str(file), "--yes")
    assert code == 1
    assert "1 of the actions did not work" in said


def test_status_shows_what_the_agent_is_at(fairwarning: Server, file: Path) -> None:
    code, said = run("status", "--config", str(file))
    assert code == 1
    assert "no agent uses" in said
    fairwarning.vm("web-0").document()
    planned = fairwarning.schedule("Reboot", "web-0")
    run("--config", str(file), "--once")
    code, said = run("status", "--config", str(file))
    assert f"Reboot of web-0 ({planned.id}) is " in said
    # Its answer may come after the event has started, which nothing waits for.
    assert ", approved" in said or ", being approved" in said
    assert ": done" in said
    shown = json.loads(run("status", "--config", str(file), "--json")[1].splitlines()[0])
    assert shown["events"][0]["actions"][0]["mark"] == "done"
    assert shown["running"] is False
    assert read_file(file).state == str(file.parent / "state.json")


def test_status_says_that_an_agent_runs_and_why_nothing_is_approved(
    fairwarning: Server, file: Path, processes: list[Process]
) -> None:
    file.write_text(file.read_text().replace("[[rule.sch", 'approve.when = "never"\n[[rule.sch'))
    process = Process("--config", str(file))
    processes.append(process)
    process.until("watching")
    planned = fairwarning.schedule("Reboot", "web-0")
    line = process.until("not approved, because")
    assert "rule 'reboots' never approves" in line
    code, said = run("status", "--config", str(file))
    assert code == 0, said
    assert "running as web-0 since" in said
    assert "answered" in said
    assert "not approved, because rule 'reboots' never approves" in said
    assert "drained: run" in said
    shown = json.loads(run("status", "--config", str(file), "--json")[1])
    assert shown["running"] is True
    assert shown["pid"] == process.process.pid
    assert [each["id"] for each in shown["events"]] == [planned.id]
    assert shown["events"][0]["notApproved"]
    process.end(signal.SIGKILL)
    code, said = run("status", "--config", str(file))
    assert code == 1
    assert "no agent uses" in said
    assert "the last one was seen" in said
    assert "drained: run" in said


def test_status_says_whether_a_shutdown_of_the_host_waits(
    file: Path, processes: list[Process]
) -> None:
    file.write_text(f"{file.read_text()}\n[host_shutdown]\ndelay = true\n")
    bus = f"unix:path={file.parent}/no-bus"
    process = Process("--config", str(file), DBUS_SYSTEM_BUS_ADDRESS=bus)
    processes.append(process)
    process.until("watching")
    why = "does not wait for the drain: the system's bus cannot be reached: No such file"
    assert any(why in line for line in process.said)
    assert why in run("status", "--config", str(file))[1]
    shown = json.loads(run("status", "--config", str(file), "--json")[1])
    assert why in shown["hostShutdown"]


def test_explain_and_test_pick_the_same_rule(file: Path) -> None:
    text = file.read_text()
    quick = '[[rule]]\nname = "short"\nsources = ["Platform"]\nduration = { max = "10s" }\n'
    later = '[[rule]]\nname = "long"\ntime_left = { min = "10m" }\n\n[[rule]]\nname = "reboots"'
    file.write_text(text.replace('[[rule]]\nname = "reboots"', f"{quick}{later}"))
    for options in ((), ("--duration", "9s"), ("--duration", "9s", "--source", "User"),
                    ("--notice", "5m")):  # fmt: skip
        shared = ["--config", str(file), *options, "--json"]
        explained = json.loads(run("explain", "--type", "reboot", *shared)[1])
        played = run("test", "reboot", "--yes", *shared)[1].splitlines()[-1]
        assert json.loads(played)["rule"] == explained["events"][0]["rule"], options
