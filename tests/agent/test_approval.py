"""Why an event is not approved is said in words, once for each reason."""

import logging
from dataclasses import replace
from typing import Any

import pytest

from fairwarning.agent.approval import why_not_approved
from fairwarning.agent.config.model import Approve, Phase, Rule, Shared, When
from fairwarning.agent.records import ActionState, Approval, Memory, Progress, Record
from fairwarning.agent.runner import ApprovalReasons
from fairwarning.agent.steps import Wait
from tests.agent.values import NOW, action, event

RULE = Rule(name="drain", scheduled=(action("a"),))


def record(rule: Rule | None = RULE, **more: Any) -> Record:
    made = Record(event=event(), rule=rule, phase=Phase.SCHEDULED, is_mine=True)
    return replace(made, **more)


def done(progress: Progress = Progress.DONE, why: str = "") -> dict[str, ActionState]:
    return {"scheduled/0": ActionState(progress=progress, why=why)}


WAIT = Wait(event_id="E1", until=NOW, why="held: two are down")


@pytest.mark.parametrize(
    ("given", "wait", "why"),
    [
        (record(rule=None), None, "no rule fits it"),
        (record(is_mine=False), None, "it does not concern web-0"),
        (
            record(rule=replace(RULE, approve=Approve(when=When.NEVER))),
            None,
            "rule 'drain' never approves",
        ),
        (
            record(action_states=done(Progress.FAILED, "exit code 1")),
            None,
            "run a did not work: exit code 1",
        ),
        (record(action_states=done()), WAIT, "held: two are down"),
        (record(), None, None),
        (record(action_states=done(), approval=Approval.DONE), None, None),
        (record(phase=Phase.STARTED), None, None),
    ],
)
def test_the_reason_is_said_in_words(given: Record, wait: Wait | None, why: str | None) -> None:
    assert why_not_approved(given, "web-0", wait) == why


def test_another_vm_approves() -> None:
    rule = replace(RULE, approve=Approve(shared=Shared.LEADER))
    shared = record(
        rule=rule, event=event(resources=("web-1", "web-0")), action_states=done(Progress.DONE)
    )
    assert "web-1" in str(why_not_approved(shared, "web-0", None))


def test_each_reason_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    reasons, changes = ApprovalReasons(), list[int]()
    reasons.on_change = lambda: changes.append(1)
    waiting = Memory(records={"E1": record(action_states=done())})
    for _ in range(3):
        reasons.update(waiting, [WAIT], "web-0")
        reasons.update(waiting, [replace(WAIT, why="web-1 not ready")], "web-0")
    said = [each.getMessage() for each in caplog.records]
    assert said == [
        "not approved, because held: two are down",
        "not approved, because web-1 not ready",
    ]
    assert len(changes) == 6
    reasons.update(Memory(), [], "web-0")
    assert reasons.now == {}
