"""Every command against the real server, with a virtual clock."""

import json
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairwarning.testing import Server
from tests.cli.conftest import Program, said
from tests.cli.test_serve import PROGRAM
from tests.support.patience import HANG_S

FLEET = """\
test = true

[[availability_set]]
name = "web"
update_domains = 2
instances = [{ name = "web-0" }, { name = "web-1" }]

[[vm]]
name = "cache"
"""


@pytest.fixture
def real() -> Iterator[Program]:
    with Server() as server:
        yield Program(server.control_url)


def answer(program: Program, *arguments: str) -> dict[str, Any]:
    result = program(*arguments, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def told(program: Program, *arguments: str) -> str:
    result = program(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@contextmanager
def beside(program: Program, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [*PROGRAM, *arguments, "--url", program.url]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_fleet_is_declared_shown_and_removed(real: Program, tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET)
    assert "+ " in told(real, "fleet", "apply", str(file), "--yes")
    assert "nothing to do" in told(real, "fleet", "apply", str(file))
    assert "web-1" in told(real, "fleet", "show")
    assert "web-1" not in told(real, "fleet", "show", "--search", "cache")
    told(real, "fleet", "remove", "web-1", "--yes")
    told(real, "fleet", "remove", "cache", "--yes")
    names = [
        instance["name"]
        for scope in answer(real, "fleet", "show")["scopes"]
        for instance in scope["instances"]
    ]
    assert names == ["web-0"]


def test_a_plan_shows_all_changes_and_makes_none(real: Program, tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET)
    before = answer(real, "fleet", "show")
    shown = told(real, "fleet", "plan", str(file))
    assert "+ " in shown
    assert f"fairwarning fleet apply {file}" in shown
    assert answer(real, "fleet", "show") == before
    told(real, "fleet", "apply", str(file), "--yes")
    assert "nothing to do" in told(real, "fleet", "plan", str(file))


def test_the_command_below_a_plan_can_be_pasted(real: Program, tmp_path: Path) -> None:
    told(real, "schedule", "reboot", "db")
    file = tmp_path / "my fleet.toml"
    file.write_text(FLEET)
    *_, summary, how = told(real, "fleet", "plan", str(file)).splitlines()
    assert summary.endswith("It cancels 1 pending event.")
    words = shlex.split(how.removeprefix("To do this: fairwarning "))
    assert words == ["fleet", "apply", str(file), "--force"]
    told(real, *words, "--yes")


def test_a_plan_names_all_mistakes_and_warns_of_a_name_in_two_sets(
    real: Program, tmp_path: Path
) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET.replace("update_domains = 2", "update_domian = 2") + "colour = 1\n")
    result = real("fleet", "plan", str(file))
    assert result.exit_code == 1
    assert [each.split(": ")[0] for each in result.stderr.splitlines()] == [
        f"{file}:5",
        f"{file}:10",
    ]
    twin = '[[availability_set]]\nname = "twin"\ninstances = ["web-0"]\n'
    file.write_text(FLEET + twin)
    result = real("fleet", "plan", str(file))
    assert "twin/web-0 or web/web-0" in result.stderr


def test_a_mistake_in_the_file_has_its_line(real: Program, tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(f"{FLEET}colour = 'red'\n")
    line = said(real("fleet", "apply", str(file), "--yes"), place=f"{file}:10")
    assert line.startswith(f"{file}:10: unknown key `colour`")


def test_a_fleet_is_not_changed_under_a_pending_event_without_force(
    real: Program, tmp_path: Path
) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET)
    told(real, "fleet", "apply", str(file), "--yes")
    event = answer(real, "schedule", "reboot", "cache")
    file.write_text(FLEET.partition("[[vm]]")[0])
    assert "--force" in said_last(real, "fleet", "apply", str(file), "--yes")
    assert answer(real, "events")["events"][0]["id"] == event["id"]
    told(real, "fleet", "apply", str(file), "--yes", "--force")
    assert answer(real, "events")["events"] == []


def said_last(program: Program, *arguments: str) -> str:
    result = program(*arguments)
    assert result.exit_code == 1, result.output
    return result.stderr.splitlines()[-1]


def test_an_event_from_announcement_to_end(real: Program) -> None:
    event = answer(real, "schedule", "reboot", "web-0", "--duration", "30s", "--why", "ticket 7")
    assert event["phase"] == "scheduled"
    short = event["id"][:8].lower()
    assert event["id"][:8] in told(real, "events")
    assert "in 15 min" in told(real, "event", "show", short)
    approved = answer(real, "approve", short, "--why", "drained")
    assert approved["phase"] == "started"
    answer(real, "clock", "advance", "1m")
    assert answer(real, "event", "show", short)["phase"] == "completed"
    assert "No event is pending" in told(real, "events")
    history = told(real, "history", "--event", short)
    assert "ticket 7" in history
    assert "drained" in history


def test_an_event_is_cancelled_and_another_postponed(real: Program) -> None:
    first = answer(real, "schedule", "reboot", "web-0")["id"]
    assert answer(real, "cancel", first, "--reason", "fine")["phase"] == "cancelled"
    second = answer(real, "schedule", "freeze", "web-0", "--notice", "20m")["id"]
    third = answer(real, "postpone", second, "--notice", "2h")
    assert answer(real, "event", "show", second)["replacedBy"] == third["id"]
    assert "in 2 h" in told(real, "events")
    assert "(notice-too-short)" not in told(real, "events", "--all", "--type", "freeze")


def test_a_refusal_of_the_rules_is_one_line_with_its_code(real: Program) -> None:
    event = answer(real, "schedule", "reboot", "web", "--update-domain", "1")
    assert event["resources"] == ["web-1"]
    answer(real, "approve", event["id"])
    assert "(event-started)" in said(real("cancel", event["id"]))


def test_who_was_deleted_is_not_called_unknown(real: Program) -> None:
    answer(real, "delete", "web-2")
    answer(real, "clock", "advance", "10m")
    line = said(real("schedule", "reboot", "web-2"))
    assert "choose one that still exists (instance-deleted)" in line


def test_waiting_ends_with_the_event(real: Program) -> None:
    with beside(real, "schedule", "reboot", "web-0", "--wait", "--json") as waiting:
        until_announced(real)
        answer(real, "clock", "advance", "15m")
        answer(real, "clock", "advance", "1h")
        out, err = waiting.communicate(timeout=HANG_S)
    assert waiting.returncode == 0, err
    assert json.loads(out)["phase"] == "completed"


def test_waiting_for_what_is_cancelled_is_a_failure(real: Program) -> None:
    with beside(real, "schedule", "reboot", "web-0", "--wait") as waiting:
        answer(real, "cancel", until_announced(real), "--reason", "the disk was fine")
        _, err = waiting.communicate(timeout=HANG_S)
    assert waiting.returncode == 1
    assert "the disk was fine" in err.splitlines()[-1]


def until_announced(program: Program) -> str:
    """The level, not the edge: whichever look finds it first."""
    for _ in range(1000):
        found = answer(program, "events")["events"]
        if found:
            return str(found[0]["id"])
    raise AssertionError("nothing was announced")


def test_watching_prints_what_happens(real: Program) -> None:
    with beside(real, "watch", "--json") as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        assert "Watching" in watching.stderr.readline()
        event = answer(real, "schedule", "reboot", "web-0")["id"]
        line = json.loads(watching.stdout.readline())
        watching.send_signal(signal.SIGINT)
        assert watching.wait(HANG_S) == 0
    assert line["event"] == event


def test_rollouts(real: Program) -> None:
    shown = told(real, "rollout", "plan", "web", "--type", "reboot")
    assert "NOT BEFORE" in shown
    assert max(map(len, shown.splitlines()[:3])) <= 100
    made = answer(real, "rollout", "start", "web", "--type", "reboot", "--yes", "--name", "patches")
    assert "patches" in told(real, "rollout", "list")
    for verb, phase in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        assert answer(real, "rollout", verb, made["id"])["phase"] == phase
    assert "cancelled" in told(real, "rollout", "show", made["id"])


def test_operations_reach_the_instance(real: Program) -> None:
    event = answer(real, "restart", "web-0", "--why", "it hangs")
    assert (event["operation"], event["source"]) == ("restart", "User")
    assert answer(real, "redeploy", "web-1")["operation"] == "redeploy"
    assert answer(real, "delete", "workers_0")["operation"] == "delete"


def test_the_clock(real: Program) -> None:
    before = answer(real, "clock", "show")
    assert before["virtual"] is True
    assert answer(real, "clock", "advance", "1h")["now"] > before["now"]


def test_tokens(real: Program) -> None:
    assert told(real, "token", "create", "--role", "viewer", "--name", "ci").startswith("fw_")
    (token,) = answer(real, "token", "list")["tokens"]
    assert token["name"] == "ci"
    assert "revoked" in told(real, "token", "revoke", token["id"])


def test_notifications(real: Program) -> None:
    made = real("notification", "add", "webhook", "--name", "ops", "--type", "reboot", "--json",
                input="http://127.0.0.1:1/hook?key=secret\n")  # fmt: skip
    assert made.exit_code == 0, made.output
    id = json.loads(made.stdout)["id"]
    listed = told(real, "notification", "list")
    assert "ops" in listed
    assert "secret" not in listed
    assert "not delivered" in said(real("notification", "test", id))
    assert "delivered" in told(real, "notification", "dead-letters")
    told(real, "notification", "remove", id)
    assert answer(real, "notification", "list")["notifications"] == []
