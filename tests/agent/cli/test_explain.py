"""`agent explain` shows what would be done and undone for the event at hand, and no secrets."""

import pytest

from fairwarning.agent.cli.explain import ActionExplanation, explain_actions, explain_hold
from fairwarning.agent.config.model import (
    Action,
    HaProxy,
    Hold,
    Http,
    Kubernetes,
    Nginx,
    Notify,
    Patroni,
    Phase,
    Rule,
    Run,
    Settings,
    Systemd,
)
from fairwarning.agent.records import Memory, Record
from fairwarning.agent.state_changes import update_events
from fairwarning.client.changes import Seen
from tests.agent.values import ME, NOW, config, event


def record_of(rule: Rule) -> Record:
    memory, _ = update_events(Memory(), Seen(events={"E1": event()}), config(rule), ME, NOW)
    return memory.records["E1"]


def shown(action: Action, phase: Phase = Phase.SCHEDULED) -> ActionExplanation:
    rule = Rule(name="r", **{phase.value: (action,)})  # type: ignore[arg-type]
    (found,) = explain_actions(record_of(rule), ME, NOW)
    return found


def test_a_command_and_its_undo_are_shown_with_the_values_of_the_event() -> None:
    run = Run(command=("drain", "{event.id}", "{event.not_before}", "{time_left}", "{phase}"))
    undo = Run(command=("undrain", "{me}", "[{event.not_before}]"))
    found = shown(Action(settings=run, undo=undo, name="out", timeout_s=1_000))
    assert found.does == "run drain E1 2026-01-01T00:15:00Z 870 scheduled"
    assert found.undo == "run undrain web-0 []"
    assert (found.name, found.goes_on) == ("out", False)


def test_values_are_those_of_the_actions_own_time() -> None:
    run = Run(command=("tell", "{event.status}", "{time_left}", "{phase}"))
    found = shown(Action(settings=run, timeout_s=60), Phase.STARTED)
    assert found.does == "run tell Started 60 started"


def test_of_a_shell_the_variables_are_shown_that_it_uses() -> None:
    text = "drain $FAIRWARNING_EVENT_TYPE ${FAIRWARNING_ME} $FAIRWARNING_NONSENSE"
    found = shown(Action(settings=Run(command=("/bin/sh", "-c", text), is_shell=True)))
    assert found.does == (
        f"run {text!r} with FAIRWARNING_EVENT_TYPE = 'Reboot', FAIRWARNING_ME = 'web-0'"
    )


def test_of_requests_and_messages_only_the_values_are_shown() -> None:
    http = Http(
        url="http://lb/key-1/{me}", headers={"Authorization": "Bearer key-2"},
        body='{"key-3": "{event.type}"}',
    )  # fmt: skip
    found = shown(Action(settings=http, undo=Http(url="http://lb/key-4")))
    assert found.does == "http POST http://lb/… with {me} = 'web-0', {event.type} = 'Reboot'"
    assert found.undo == "http POST http://lb/…"
    notify = Notify(url="slack://key-5", title="{event.type}")
    assert shown(Action(settings=notify)).does == "notify slack://… with {event.type} = 'Reboot'"


@pytest.mark.parametrize(
    ("settings", "undo"),
    [
        (Kubernetes(), "kubernetes uncordon web-0"),
        (Systemd(stop=("a", "b")), "systemd start b a, those that ran"),
        (HaProxy(socket="/s", server="web/{me}"), "haproxy ready web/web-0"),
        (Nginx(file="f", upstream="web", server="{me}:80"), "nginx web/web-0:80 up"),
        (
            Patroni(switch_back=True),
            "patroni switchover back to this member, if it was the leader",
        ),
        (Patroni(), None),
        (Run(command=("x",)), None),
    ],
)
def test_what_undoes_itself_says_how(settings: Settings, undo: str | None) -> None:
    assert shown(Action(settings=settings)).undo == undo
    assert shown(Action(settings=settings), Phase.FINISHED).undo is None


def test_what_holds_the_approval_is_shown_too() -> None:
    hold = Hold(command=("healthy", "{me}", "{event.type}"))
    assert explain_hold(hold, record_of(Rule(name="r")), ME, NOW) == "run healthy web-0 Reboot"
