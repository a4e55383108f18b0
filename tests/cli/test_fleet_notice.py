"""`fleet apply`, `fleet remove` and `serve --fleet` on instances that are due a Terminate."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Program, said
from tests.cli.fake import Fake, problem
from tests.cli.test_control import answer, told
from tests.cli.test_serve import PROGRAM, ask, serve_process
from tests.cli.values import an_instance

FLEET = """\
[[scale_set]]
name = "workers"
capacity = {capacity}
terminate_notice = "5m"
"""
ON_VIRTUAL_CLOCK = ("--control", "127.0.0.1:0", "--clock", "virtual", "--no-azure", "--json")
WHY = ("--why", "the rack burns")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "fleet.toml"
    found.write_text(FLEET.format(capacity=3))
    return found


@pytest.fixture
def real(file: Path) -> Iterator[Program]:
    """A server with workers_0 to workers_2, which are watched."""
    with serve_process(*ON_VIRTUAL_CLOCK, "--store", "memory:", "--fleet", str(file)) as process:
        assert process.stdout is not None
        urls = json.loads(process.stdout.readline())
        ask(urls["metadata"][0], "workers_0")
        yield Program(urls["control"])


def live(program: Program) -> list[str]:
    scopes = answer(program, "fleet", "show")["scopes"]
    return [each["name"] for scope in scopes for each in scope["instances"]]


def terminates(program: Program) -> list[str]:
    events = answer(program, "events")["events"]
    return sorted(each["resources"][0] for each in events if each["type"] == "Terminate")


def test_a_smaller_file_says_who_leaves_and_how(real: Program, file: Path) -> None:
    file.write_text(FLEET.format(capacity=1))
    shown = told(real, "fleet", "apply", str(file), "--yes")
    assert "- instance workers_1: leaves by a Terminate event, with 5 min of notice" in shown
    assert "Fleet: 2 leaving by Terminate." in shown
    assert len(live(real)) == 3
    assert terminates(real) == ["workers_1", "workers_2"]
    assert "nothing to do" in told(real, "fleet", "apply", str(file))
    told(real, "clock", "advance", "6m")
    assert live(real) == ["workers_0"]


def test_removing_warns_first_and_says_so_when_it_is_under_way(real: Program) -> None:
    shown = told(real, "fleet", "remove", "workers_2", "--yes", "--force")
    assert "leaves by a Terminate event" in shown
    assert "is leaving already" in told(real, "fleet", "remove", "workers_2", "--yes", "--force")
    assert terminates(real) == ["workers_2"]
    assert len(live(real)) == 3


def test_leaving_without_notice_needs_a_word_and_a_reason_and_names_them(
    real: Program, file: Path
) -> None:
    file.write_text(FLEET.format(capacity=2))
    for arguments in (["apply", str(file)], ["remove", "workers_1"]):
        refused = real("fleet", *arguments, "--yes", "--without-notice")
        assert refused.exit_code == 2
        assert "needs --why" in refused.stderr
    shown = told(real, "fleet", "apply", str(file), "--yes", "--without-notice", *WHY)
    assert "workers_2: leaves at once, without its 5 min of notice" in shown
    assert live(real) == ["workers_0", "workers_1"]
    shown = told(real, "fleet", "remove", "workers", "--yes", "--without-notice", *WHY)
    assert "These leave at once, without their notice: workers_0, workers_1." in shown
    assert live(real) == []
    assert terminates(real) == []
    history = answer(real, "history")["entries"]
    gone = [each["why"] for each in history if each["kind"] == "InstanceDeleted"]
    assert gone == ["the rack burns"] * 3


def test_without_a_terminal_nobody_leaves_without_notice_unasked(real: Program, file: Path) -> None:
    file.write_text(FLEET.format(capacity=0))
    for arguments in (["apply", str(file)], ["remove", "workers_1"]):
        refused = real("fleet", *arguments, "--without-notice", *WHY)
        assert refused.exit_code == 2
        assert "--yes" in refused.stderr
    assert len(live(real)) == 3


def preview(*names: str) -> Any:
    detail = "… would leave; ask again with confirm=c2"
    return problem(409, "preview-needed", detail, instances=list(names), confirm="c2")


def test_others_than_those_who_were_named_do_not_leave(fake: Fake, run: Program) -> None:
    change = {"action": "remove", "what": "instance w_1", "scope": "s", "withoutNotice": True}
    fake.on("POST /fleet/plan", {"changes": [change], "kept": [], "confirm": "c1"})
    fake.on("PUT /fleet", preview("w_1", "w_2"))
    result = run("fleet", "apply", "-", "--yes", "--without-notice", *WHY, input="")
    assert result.exit_code == 1
    assert "w_1, w_2 would leave without notice; nothing was done" in result.stderr
    (put,) = fake.of("PUT /fleet")
    assert (put.query["withoutNotice"], put.query["confirm"]) == (["true"], ["c1"])
    fake.on("GET /instances/w_1", {**an_instance("w_1"), "scope": "s"})
    fake.on("DELETE /instances/w_1", preview("w_1"), preview("w_1", "w_2"))
    result = run("fleet", "remove", "w_1", "--yes", "--without-notice", *WHY)
    assert result.exit_code == 1
    assert "the fleet changed meanwhile" in result.stderr
    assert [each.query.get("confirm") for each in fake.of("DELETE /instances/w_1")] == [
        None,
        ["c2"],
    ]


def test_an_operator_is_told_that_it_takes_an_admin(real: Program, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text(
        answer(real, "token", "create", "--role", "operator", "--name", "o")["secret"]
    )
    arguments = ("fleet", "remove", "workers_1", "--yes", "--without-notice", *WHY)
    assert "only an admin" in said(real(*arguments, "--token-file", str(secret)))
    assert "workers_1" in live(real)


def test_a_server_that_starts_with_a_smaller_file_warns_and_logs_it(
    file: Path, tmp_path: Path
) -> None:
    store = ("--store", f"sqlite:///{tmp_path / 'fleet.db'}")
    with serve_process(*ON_VIRTUAL_CLOCK, *store, "--fleet", str(file)) as process:
        assert process.stdout is not None
        ask(json.loads(process.stdout.readline())["metadata"][0], "workers_0")
        process.terminate()
        process.wait()
    file.write_text(FLEET.format(capacity=1).replace('terminate_notice = "5m"', ""))
    log = tmp_path / "log"
    options = ("--metadata", "127.0.0.1:0", *ON_VIRTUAL_CLOCK, *store, "--fleet", str(file))
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [*PROGRAM, "serve", *options], stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            program = Program(json.loads(process.stdout.readline())["control"])
            assert len(live(program)) == 3
            assert terminates(program) == ["workers_1", "workers_2"]
            told(program, "clock", "advance", "6m")
            assert live(program) == ["workers_0"]
        finally:
            process.kill()
    assert (
        "the fleet file leaves out instance workers_2: it leaves by a Terminate" in log.read_text()
    )
