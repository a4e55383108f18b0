"""What each command asks for, and how it answers."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from fairwarning.cli.main import main
from tests.cli.conftest import Program, said
from tests.cli.fake import Answer, Fake, problem
from tests.cli.test_examples import every_command
from tests.cli.values import ID, OTHER_ID, WEB, a_scope, an_entry, an_event, an_instance

CHANGE = {"action": "add", "what": "instance web-3", "scope": WEB, "detail": "", "events": []}
PLAN = {"changes": [CHANGE], "kept": []}
EMPTY: dict[str, Any] = {"events": [], "next": None}


def test_json_is_the_apis_own_on_one_line(fake: Fake, run: Program) -> None:
    body = {"events": [an_event(description="ü")], "next": None, "unknown": 1}
    fake.on("GET /events", body)
    result = run("events", "--json")
    assert json.loads(result.stdout) == body
    assert len(result.stdout.splitlines()) == 1


def test_events_are_the_unfinished_ones_unless_all_are_asked_for(fake: Fake, run: Program) -> None:
    fake.on("GET /events", EMPTY)
    assert "No event is pending" in run("events").stdout
    run("events", "--all", "--type", "reboot", "--scope", "web")
    first, second = (asked.query for asked in fake.of("GET /events"))
    assert first["phase"] == ["scheduled", "started"]
    assert "phase" not in second
    assert (second["type"], second["scope"]) == (["Reboot"], ["web"])


def test_scheduling_sends_what_was_asked_for(fake: Fake, run: Program) -> None:
    fake.on("POST /events", an_event())
    result = run(
        "schedule", "freeze", "web-0", "web-3", "--notice", "1h30m", "--duration", "9s",
        "--description", "host", "--why", "ticket 7",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    (asked,) = fake.of("POST /events")
    assert asked.query == {"why": ["ticket 7"]}
    assert asked.json == {
        "type": "Freeze",
        "targets": ["web-0", "web-3"],
        "notice": "PT1H30M",
        "duration": "PT9S",
        "description": "host",
    }
    assert ID in result.stdout
    assert "in 15 min" in result.stdout


def test_an_update_domain_makes_the_target_a_scope(fake: Fake, run: Program) -> None:
    fake.on("POST /events", an_event())
    run("schedule", "reboot", "web", "--update-domain", "1", "--not-before", "2026-11-16T22:00Z",
        "--already-happened")  # fmt: skip
    (asked,) = fake.of("POST /events")
    assert asked.json == {
        "type": "Reboot",
        "scope": "web",
        "updateDomain": 1,
        "notBefore": "2026-11-16T22:00:00.000Z",
        "alreadyHappened": True,
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ["schedule", "explode", "web-0"],
        ["schedule", "reboot"],
        ["schedule", "reboot", "a", "b", "--update-domain", "1"],
        ["schedule", "reboot", "a", "--notice", "soon"],
        ["schedule", "reboot", "a", "--not-before", "soon"],
        ["schedule", "reboot", "a", "--notice", "1h", "--not-before", "22:00"],
        ["postpone", ID],
        ["postpone", ID, "--notice", "1h", "--not-before", "22:00"],
        ["rollout", "plan", "--type", "reboot"],
        ["rollout", "plan", "web", "--whole-fleet", "--type", "reboot"],
        ["rollout", "plan", "web", "--type", "terminate"],
        ["rollout", "plan", "web", "--type", "reboot", "--window", "noon"],
        ["rollout", "plan", "web", "--type", "reboot", "--blackout", "christmas"],
        ["scale", "workers", "many"],
        ["scale", "workers", "1001"],
        ["model", "workers"],
        ["model", "workers", "--terminate-notice", "soon"],
        ["policy", "workers"],
        ["clock", "advance", "a while"],
        ["token", "create", "--role", "king"],
        ["notification", "dead-letters", "--retry", "1", "--discard", "2"],
        ["fleet", "apply", "/no/such/file.toml"],
        ["completion", "tcsh"],
        ["nonsense"],
    ],
)
def test_bad_usage_changes_nothing(arguments: list[str], fake: Fake, run: Program) -> None:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert all(asked.method == "GET" for asked in fake.asked)


@pytest.mark.parametrize(
    "verb",
    ["restart", "redeploy", "reimage", "start", "stop", "deallocate", "delete", "evict"],
)
def test_operations(verb: str, fake: Fake, run: Program) -> None:
    fake.on(f"POST /instances/web-0/{verb}", Answer(202, an_event(source="User", operation=verb)))
    result = run(verb, "web-0", "--why", "hangs")
    assert result.exit_code == 0, result.output
    assert f"User, {verb}" in result.stdout
    assert fake.of(f"POST /instances/web-0/{verb}")[0].query == {"why": ["hangs"]}


def test_decisions(fake: Fake, run: Program) -> None:
    fake.on(f"GET /events/{ID}", an_event())
    for verb in ("approve", "cancel", "postpone"):
        fake.on(f"POST /events/{ID}/{verb}", an_event())
    assert run("approve", ID).exit_code == 0
    assert run("cancel", ID, "--reason", "fine").exit_code == 0
    assert run("postpone", ID, "--notice", "2h").exit_code == 0
    assert fake.of(f"POST /events/{ID}/cancel")[0].json == {"reason": "fine"}
    assert fake.of(f"POST /events/{ID}/postpone")[0].json == {"notice": "PT2H"}


def test_an_id_may_be_abbreviated(fake: Fake, run: Program) -> None:
    fake.on(f"GET /events/{ID}", an_event(timeline=[an_entry()]))
    fake.on("GET /events", {"events": [an_event(), an_event(id=OTHER_ID)], "next": None})
    assert "is scheduled" in run("event", "show", "602d94").stdout
    line = said(run("cancel", "602d9"))
    assert ID in line
    assert OTHER_ID in line
    assert "begins with" in said(run("cancel", "77777"))
    assert not fake.of(f"POST /events/{ID}/cancel")


def test_every_event_that_is_not_over_is_looked_at_however_many_there_are(
    fake: Fake, run: Program
) -> None:
    """The newest two hundred of all are only for those that are over."""
    many = [an_event(id=f"{number:08}-d2cd-49c7-8624-8643e7171297") for number in range(200)]
    last = {"events": [an_event()], "next": None}
    fake.on("GET /events", {"events": many, "next": "200"}, last, EMPTY)
    fake.on(f"GET /events/{ID}", an_event())
    assert run("event", "show", "602D9444").exit_code == 0
    _, second = (asked.query for asked in fake.of("GET /events"))
    assert (second["after"], second["phase"]) == (["200"], ["scheduled", "started"])


def test_an_old_event_is_found_among_the_newest(fake: Fake, run: Program) -> None:
    fake.on("GET /events", EMPTY, {"events": [an_event()], "next": None})
    fake.on(f"GET /events/{ID}", an_event())
    assert run("event", "show", "602D9444").exit_code == 0


def test_a_short_id_of_its_own_is_never_taken_for_the_beginning_of_another(
    fake: Fake, run: Program
) -> None:
    fake.on("GET /events/disk", an_event(id="disk"))
    fake.on("POST /events/disk/cancel", an_event(id="disk"))
    fake.on("GET /events", {"events": [an_event(id="disk-2")], "next": None})
    assert run("cancel", "disk", "--json").exit_code == 0
    assert fake.of("POST /events/disk/cancel")


def test_applying_shows_the_difference_and_then_does_it(
    fake: Fake, run: Program, tmp_path: Path
) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text("[[vm]]\nname = 'db'\n")
    fake.on("POST /fleet/plan", PLAN)
    fake.on("PUT /fleet", PLAN)
    result = run("fleet", "apply", str(file), "--yes", "--why", "rack")
    assert result.exit_code == 0, result.output
    assert result.stdout.index("+ instance web-3") < result.stdout.index("1 added")
    (put,) = fake.of("PUT /fleet")
    assert put.body == file.read_bytes()
    assert put.headers["content-type"] == "application/toml"
    assert put.query == {"force": ["false"], "why": ["rack"]}


def test_with_json_the_difference_goes_elsewhere(fake: Fake, run: Program, tmp_path: Path) -> None:
    (tmp_path / "fleet.json").write_text("{}")
    fake.on("POST /fleet/plan", PLAN)
    fake.on("PUT /fleet", PLAN)
    result = run("fleet", "apply", str(tmp_path / "fleet.json"), "--yes", "--json")
    assert json.loads(result.stdout) == PLAN
    assert "+ instance web-3" in result.stderr
    assert fake.of("PUT /fleet")[0].headers["content-type"] == "application/json"


def test_without_a_terminal_nothing_is_applied_unasked(fake: Fake, run: Program) -> None:
    fake.on("POST /fleet/plan", PLAN)
    result = run("fleet", "apply", "-", input="test = true\n")
    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert not fake.of("PUT /fleet")


def test_ending_events_needs_force(fake: Fake, run: Program) -> None:
    fake.on("POST /fleet/plan", {"changes": [{**CHANGE, "events": [ID]}], "kept": []})
    fake.on("PUT /fleet", PLAN)
    assert "--force" in said(run("fleet", "apply", "-", "--yes", input=""))
    assert not fake.of("PUT /fleet")
    assert run("fleet", "apply", "-", "--yes", "--force", input="").exit_code == 0
    assert fake.of("PUT /fleet")[0].query["force"] == ["true"]


def test_a_mistake_in_the_file_names_its_line(fake: Fake, run: Program, tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text("x")
    fake.on(
        "POST /fleet/plan",
        problem(422, "fleet-invalid", "line 7: no such key; take it out", line=7),
    )
    line = said(run("fleet", "apply", str(file)), place=f"{file}:7")
    assert line == f"{file}:7: no such key; take it out (fleet-invalid)"


def test_each_mistake_in_the_file_has_its_own_line(fake: Fake, run: Program) -> None:
    mistakes = [{"detail": "no name", "line": 7}, {"detail": "no\nkey", "line": 9}]
    fake.on("POST /fleet/plan", problem(422, "fleet-invalid", "no name", line=7, problems=mistakes))
    result = run("fleet", "apply", "-", input="x")
    assert result.exit_code == 1
    first, second = result.stderr.splitlines()
    assert first == "-:7: no name (fleet-invalid)"
    assert second.startswith("-:9: no")


def test_a_fleet_that_is_right_already_is_left_alone(fake: Fake, run: Program) -> None:
    fake.on("POST /fleet/plan", {"changes": [], "kept": []})
    result = run("fleet", "apply", "-", input="")
    assert result.exit_code == 0
    assert "nothing to do" in result.stdout
    assert not fake.of("PUT /fleet")


def test_removing_finds_out_what_the_name_is(fake: Fake, run: Program) -> None:
    fake.on("GET /scopes/web", a_scope(WEB, an_instance("web"), an_instance("web-1")))
    fake.on("GET /instances/web", {**an_instance("web"), "scope": WEB})
    fake.on("GET /instances/web-1", {**an_instance("web-1"), "scope": WEB})
    fake.on("GET /scopes/db", a_scope("s/g/vm/db", an_instance("db")))
    fake.on("GET /instances/db", {**an_instance("db"), "scope": "s/g/vm/db"})
    for path in ("/instances/web-1", "/scopes/db"):
        fake.on(f"DELETE {path}", PLAN)
    assert WEB in said(run("fleet", "remove", "web", "--yes"))
    assert "fleet show" in said(run("fleet", "remove", "none", "--yes"))
    assert run("fleet", "remove", "web-1").exit_code == 2
    assert run("fleet", "remove", "web-1", "--yes").exit_code == 0
    assert fake.of("DELETE /instances/web-1")[0].query == {"force": ["false"]}
    assert run("fleet", "remove", "db", "--yes", "--force").exit_code == 0
    assert fake.of("DELETE /scopes/db")[0].query["force"] == ["true"]
    assert not fake.of("DELETE /instances/db")


def test_a_rollout_sends_what_was_asked_for(fake: Fake, run: Program) -> None:
    fake.on("POST /rollouts/plan", {"steps": [], "ends": None, "warnings": []})
    result = run(
        "rollout", "plan", "web", "workers/0", "--type", "reboot", "--scopes-at-once", "2",
        "--pause", "10m", "--window", "sat,sun 01:00-05:00", "--window", "22:00-24:00",
        "--time-zone", "Europe/Berlin", "--blackout", "2026-12-24/2026-12-26", "--keep-going",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
    (sent,) = fake.of("POST /rollouts/plan")
    assert "idempotency-key" not in sent.headers, "a plan changes nothing, so none is kept"
    assert sent.json == {
        "type": "Reboot",
        "scopes": ["web", "workers/0"],
        "scopesAtOnce": 2,
        "pause": "PT10M",
        "windows": [
            {"days": ["sat", "sun"], "from": "01:00", "to": "05:00"},
            {"days": days, "from": "22:00", "to": "24:00"},
        ],
        "timeZone": "Europe/Berlin",
        "blackouts": ["2026-12-24/2026-12-26"],
        "stopOnFailure": False,
    }


def test_a_rollout_is_not_started_unasked(fake: Fake, run: Program) -> None:
    fake.on("POST /rollouts/plan", {"steps": [], "ends": None, "warnings": []})
    assert run("rollout", "start", "web", "--type", "reboot").exit_code == 2
    assert not fake.of("POST /rollouts")


def test_the_secret_of_a_token_stands_alone_on_standard_output(fake: Fake, run: Program) -> None:
    made = {"id": "T1", "name": "ci", "role": "viewer", "secret": "fw_secret"}
    fake.on("POST /tokens", Answer(201, made))
    result = run("token", "create", "--role", "viewer", "--name", "ci", "--expires", "90d")
    assert result.stdout == "fw_secret\n"
    (asked,) = fake.of("POST /tokens")
    assert asked.json == {"name": "ci", "role": "viewer", "expires": "PT2160H"}
    assert "idempotency-key" not in asked.headers


NOTIFICATION: dict[str, Any] = {
    "id": "N1",
    "name": "ops",
    "kind": "webhook",
    "url": "https://ops.example/…",
    "filters": {"kinds": ["Started"]},
    "created": "2026-11-16T12:00:00Z",
    "secret": "whsec",
}


def test_secrets_of_notifications_come_from_files_pipes_and_the_environment(
    fake: Fake, run: Program, tmp_path: Path
) -> None:
    fake.on("POST /notifications", Answer(201, NOTIFICATION))
    (tmp_path / "url").write_text("https://file.example\n")
    (tmp_path / "key").write_text("signing\n")
    add = ("notification", "add", "webhook", "--name", "ops")
    first = run(*add, "--url-file", f"{tmp_path}/url", "--secret-file", f"{tmp_path}/key",
                "--type", "reboot", "--kind", "Started", "--title", "hey")  # fmt: skip
    assert first.exit_code == 0, first.output
    assert first.stdout.endswith("whsec\n")
    run(*add, FAIRWARNING_NOTIFICATION_URL="https://env.example")
    run(*add, input="https://pipe.example\n")
    bodies = [asked.json for asked in fake.of("POST /notifications")]
    assert [body["url"] for body in bodies] == [
        "https://file.example",
        "https://env.example",
        "https://pipe.example",
    ]
    assert bodies[0]["secret"] == "signing"
    assert bodies[0]["filters"] == {"types": ["Reboot"], "kinds": ["Started"]}
    assert bodies[0]["template"] == {"title": "hey"}
    assert "secret" not in bodies[1]
    assert run(*add, input="").exit_code == 2


def test_a_test_that_is_not_delivered_is_a_failure(fake: Fake, run: Program) -> None:
    fake.on("POST /notifications/N1/test", {"delivered": True, "error": ""})
    fake.on("POST /notifications/N2/test", {"delivered": False, "error": "connection refused"})
    assert run("notification", "test", "N1").exit_code == 0
    assert "connection refused" in said(run("notification", "test", "N2"))
    as_json = run("notification", "test", "N2", "--json")
    assert json.loads(as_json.stdout)["delivered"] is False
    assert as_json.exit_code == 1


def test_dead_letters(fake: Fake, run: Program) -> None:
    letter = {"id": "L1", "target": "N1", "title": "t", "attempts": 8, "error": "refused"}
    fake.on("GET /notifications/dead-letters", {"deadLetters": [letter], "next": None})
    fake.on("POST /notifications/dead-letters/L1/retry", {})
    fake.on("DELETE /notifications/dead-letters/L1", Answer(204, b""))
    assert "refused" in run("notification", "dead-letters").stdout
    assert run("notification", "dead-letters", "--retry", "L1").exit_code == 0
    assert run("notification", "dead-letters", "--discard", "L1", "--json").stdout == "{}\n"


def test_history_is_asked_for_by_scope_and_event(fake: Fake, run: Program) -> None:
    fake.on("GET /history", {"entries": [an_entry(why="ticket 7")], "next": None})
    result = run("history", "--scope", "web", "--event", ID, "--limit", "5")
    assert "ticket 7" in result.stdout
    assert fake.of("GET /history")[0].query == {
        "limit": ["5"],
        "scope": ["web"],
        "event": [ID],
    }


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (["approve", ID], f"POST /events/{ID}/approve"),
        (["cancel", ID], f"POST /events/{ID}/cancel"),
        (["postpone", ID, "--notice", "2h"], f"POST /events/{ID}/postpone"),
        (["schedule", "reboot", "web-0"], "POST /events"),
        (["rollout", "start", "web", "--type", "reboot", "--yes"], "POST /rollouts"),
        (["rollout", "pause", "R1"], "POST /rollouts/R1/pause"),
        (["rollout", "resume", "R1"], "POST /rollouts/R1/resume"),
        (["rollout", "cancel", "R1"], "POST /rollouts/R1/cancel"),
        (["scale", "workers", "2"], "POST /scopes/workers/scale"),
        (["replace", "workers_1"], "POST /instances/workers_1/replace"),
        (["model", "workers", "--terminate-notice", "none"], "POST /scopes/workers/model"),
        (["upgrade", "workers"], "POST /scopes/workers/upgrade"),
        (["policy", "workers", "--approve-reboot"], "POST /scopes/workers/policy"),
        (["clock", "advance", "1m"], "POST /clock/advance"),
        (["fault", "set", "status"], "POST /faults"),
        (["fault", "clear"], "DELETE /faults"),
        (["fault", "clear", "F1"], "DELETE /faults/F1"),
        (["token", "create", "--role", "viewer", "--name", "ci"], "POST /tokens"),
        (["token", "revoke", "T1"], "DELETE /tokens/T1"),
        (["notification", "add", "webhook", "--name", "ops"], "POST /notifications"),
        (["notification", "remove", "N1"], "DELETE /notifications/N1"),
        (
            ["notification", "dead-letters", "--retry", "L1"],
            "POST /notifications/dead-letters/L1/retry",
        ),
        (
            ["notification", "dead-letters", "--discard", "L1"],
            "DELETE /notifications/dead-letters/L1",
        ),
        (["fleet", "apply", "-", "--yes"], "PUT /fleet"),
        (["fleet", "remove", "web-1", "--yes"], "DELETE /instances/web-1"),
    ],
    ids=lambda each: "" if isinstance(each, str) else " ".join(each[:2]),
)
def test_the_reason_is_sent_along_and_a_key_unless_a_secret_comes_back(
    arguments: list[str], asked: str, fake: Fake, run: Program
) -> None:
    fake.on("POST /rollouts/plan", {"steps": [], "ends": None, "warnings": []})
    fake.on("POST /fleet/plan", PLAN)
    fake.on("GET /instances/web-1", {**an_instance("web-1"), "scope": WEB})
    fake.on(asked, PLAN)
    result = run(*arguments, "--why", "ticket 7", "--json", input="https://ops.example\n")
    assert result.exit_code == 0, result.output
    (sent,) = fake.of(asked)
    assert sent.query["why"] == ["ticket 7"]
    is_repeatable = sent.method == "POST" and asked not in ("POST /tokens", "POST /notifications")
    assert ("idempotency-key" in sent.headers) == is_repeatable


def test_every_command_that_asks_takes_yes() -> None:
    asking = [
        (path, command)
        for path, command in every_command(main)
        if command.callback and "confirm(" in inspect.getsource(inspect.unwrap(command.callback))
    ]
    assert len(asking) >= 6
    for path, command in asking:
        assert "yes" in {each.name for each in command.params}, path


def test_scopes_that_are_declared_elsewhere_are_told_to_stay(
    fake: Fake, run: Program, tmp_path: Path
) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text("[[vm]]\nname = 'db'\n")
    plan = {**PLAN, "kept": ["a/b/vm/x", "a/b/vm/y"]}
    fake.on("POST /fleet/plan", plan)
    fake.on("PUT /fleet", plan)
    for command in ("plan", "apply"):
        more = ["--yes"] if command == "apply" else []
        result = run("fleet", command, str(file), *more)
        assert "2 scopes not in the file, declared elsewhere, left as is." in result.stdout


def test_a_clock_is_real_or_virtual_or_fast(fake: Fake, run: Program) -> None:
    now = "2026-11-16T12:00:00.000Z"
    for face, words in (
        ({"virtual": False}, ", real\n"),
        ({"virtual": True, "speed": 0}, ", virtual\n"),
        ({"virtual": True, "speed": 60.0}, ", virtual, 60 times as fast as the real one\n"),
    ):
        fake.on("GET /clock", {"now": now, **face})
        assert run("clock", "show").stdout.endswith(words)


def test_a_script_of_the_shell_and_a_scenario_come_as_json_too(run: Program) -> None:
    found = json.loads(run("completion", "bash", "--json").stdout)
    assert found["shell"] == "bash"
    assert found["script"] + "\n" == run("completion", "bash").stdout
    found = json.loads(run("scenario", "show", "neighbour", "--json").stdout)
    assert found["name"] == "neighbour"
    assert found["toml"] == run("scenario", "show", "neighbour").stdout
