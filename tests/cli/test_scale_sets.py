"""The commands about scale sets, against the real server with a virtual clock."""

import json
from collections.abc import Iterator

import pytest

from fairwarning.testing import Server
from tests.cli.conftest import Program, said
from tests.cli.fake import Answer, Fake
from tests.cli.test_control import answer, beside, told, until_announced
from tests.cli.values import ID, OTHER_ID, an_event
from tests.support.patience import HANG_S

FLEET = """\
test = true

[[scale_set]]
name = "jobs"
capacity = 3
terminate_notice = "5m"

[[vm]]
name = "cache"
"""


@pytest.fixture
def real() -> Iterator[Program]:
    with Server(fleet=FLEET) as server:
        yield Program(server.control_url)


def names(program: Program) -> list[str]:
    scopes = answer(program, "fleet", "show", "--search", "jobs")["scopes"]
    return [each["name"] for scope in scopes for each in scope["instances"]]


def test_a_set_grows_and_shrinks(real: Program) -> None:
    grown = told(real, "scale", "jobs", "5", "--address", "127.0.9.1", "--why", "long queue")
    assert "has 5 instances" in grown
    assert "+ jobs_3, jobs_4" in grown
    assert "127.0.9.1" in told(real, "fleet", "show")
    assert "long queue" in told(real, "history")
    shrunk = answer(real, "scale", "jobs", "2")
    assert [each["resources"] for each in shrunk["events"]] == [["jobs_2"], ["jobs_3"], ["jobs_4"]]
    answer(real, "clock", "advance", "1m")
    assert names(real) == ["jobs_0", "jobs_1"]


def test_waiting_lasts_until_all_who_go_are_gone(real: Program) -> None:
    with beside(real, "scale", "jobs", "1", "--wait", "--yes", "--json") as waiting:
        until_announced(real)
        answer(real, "clock", "advance", "1m")
        out, err = waiting.communicate(timeout=HANG_S)
    assert waiting.returncode == 0, err
    assert [each["phase"] for each in json.loads(out)["events"]] == ["completed"] * 2


def test_waiting_for_one_that_is_taken_back_is_a_failure(fake: Fake, run: Program) -> None:
    events = [an_event(), an_event(id=OTHER_ID)]
    done = {"name": "jobs", "capacity": 1, "added": [], "events": events}
    fake.on("POST /scopes/jobs/scale", Answer(202, done))
    fake.on(f"GET /events/{ID}", an_event(phase="completed"))
    fake.on(f"GET /events/{OTHER_ID}", an_event(id=OTHER_ID, phase="cancelled", outcome="no"))
    result = run("scale", "jobs", "1", "--wait")
    assert result.exit_code == 1
    assert f"fairwarning event show {OTHER_ID}" in result.stderr


def test_an_instance_is_replaced(real: Program) -> None:
    done = answer(real, "replace", "jobs_1", "--address", "127.0.9.2")
    assert (done["added"], done["capacity"]) == (["jobs_3"], 3)
    answer(real, "clock", "advance", "1m")
    assert names(real) == ["jobs_0", "jobs_2", "jobs_3"]
    assert "(not-a-scale-set)" in said(real("replace", "cache"))


def test_a_model_is_changed_and_instances_follow(real: Program) -> None:
    changed = told(real, "model", "jobs", "--terminate-notice", "10m", "--reimage-notice", "15m")
    assert "10 min" in changed
    assert "fairwarning upgrade jobs" in changed
    fleet = told(real, "fleet", "show")
    assert "notice 10 min," in fleet
    assert "3 behind" in fleet
    assert "jobs_2: now of" in told(real, "upgrade", "jobs", "jobs_2")
    assert answer(real, "upgrade", "jobs")["upgraded"] == ["jobs_0", "jobs_1"]
    assert "Nothing to do" in told(real, "upgrade", "jobs")
    (scope,) = answer(real, "model", "jobs", "--terminate-notice", "none")["scopes"]
    assert scope["model"] == {
        "generation": 3,
        "terminateNotice": None,
        "reimageNotice": "PT15M",
    }
    line = said(real("model", "jobs", "--terminate-notice", "1m"))
    assert line.endswith("; choose from PT5M to PT15M (terminate-notice-invalid)")


@pytest.mark.parametrize(
    ("option", "remedy"),
    [
        ("--terminate-notice", "choose from PT5M to PT15M (terminate-notice-invalid)"),
        ("--reimage-notice", "choose PT15M, or leave it out (reimage-notice-invalid)"),
    ],
)
@pytest.mark.parametrize("text", ["banana", "7", "PT0.1H"])
def test_what_is_no_notice_is_refused_in_the_words_of_the_server(
    run: Program, option: str, remedy: str, text: str
) -> None:
    result = run("model", "jobs", option, text)
    assert result.exit_code == 2
    assert remedy in " ".join(result.stderr.split())


def test_a_policy_is_changed_for_any_scope(real: Program) -> None:
    told(real, "policy", "jobs", "--approve-reboot", "--no-approve-all-down")
    (scope,) = answer(real, "policy", "jobs", "--approve-redeploy", "--no-approve-reboot")["scopes"]
    assert scope["policy"] == {
        "approveUserReboot": False,
        "approveUserRedeploy": True,
        "approveAllInstancesDown": False,
        "notice": {},
    }
    assert "vm/cache" in told(real, "policy", "cache", "--approve-reboot")


def test_power_reaches_the_instance(real: Program) -> None:
    for verb, power in (("stop", "stopped"), ("start", "running"), ("deallocate", "deallocated")):
        assert answer(real, verb, "cache")["operation"] == verb
        answer(real, "clock", "advance", "1m")
        assert power in told(real, "fleet", "show", "--search", "cache")
    assert answer(real, "reimage", "jobs_0")["operation"] == "reimage"


def test_an_emptied_set_is_still_shown_with_its_events_and_history(real: Program) -> None:
    answer(real, "scale", "jobs", "0")
    answer(real, "clock", "advance", "6m")
    assert "jobs" in told(real, "fleet", "show")
    assert "Terminate" in told(real, "events", "--all", "--scope", "jobs")
    assert "jobs_0" in told(real, "history", "--scope", "jobs")
    assert "+ jobs_3" in told(real, "scale", "jobs", "1")
