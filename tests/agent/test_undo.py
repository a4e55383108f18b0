"""Which action is undone next, and when a failed undo is tried again."""

from dataclasses import replace

from fairwarning.agent.config.model import (
    Phase,
    Rule,
)
from fairwarning.agent.plan import Now, decide
from fairwarning.agent.records import ActionState, Place, Progress
from fairwarning.agent.state_changes import update_events
from fairwarning.agent.steps import (
    Wait,
)
from tests.agent.machine import Machine, later, remembered, seen
from tests.agent.values import DRAIN, ME, NOW, action, config, event


def test_a_new_event_waits_for_an_undo_that_is_on_its_way() -> None:
    machine = Machine(config=config(Rule(name="r", scheduled=(action("a"),))),
                      failing=frozenset({"una"}))  # fmt: skip
    machine.show(seen(event("E1")), NOW)
    machine.show(seen(), later(NOW, 1))
    assert machine.done == {"a"}, "the undo failed so far"
    machine.show(seen(event("E2")), later(NOW, 2))
    assert machine.approved == {"E1", "E2"}
    machine.settle(later(NOW, 2000))
    assert machine.done == set()


def test_an_undo_that_fails_is_tried_until_it_works_and_holds_up_nothing() -> None:
    rule = replace(DRAIN, finished=(action("f", has_undo=False),))
    machine = Machine(config=config(rule), failing=frozenset({"unb"}))
    machine.show(seen(event()), NOW)
    until = machine.show(seen(), later(NOW, 60))
    assert machine.history[2:] == ["undo:b", "undo:a", "finished:f"]
    assert until == later(NOW, 70)
    machine.settle(until)
    assert machine.done == {"f"}
    assert machine.memory.records == {}


def test_an_undo_put_off_by_a_clock_that_was_wrong_is_tried_at_once() -> None:
    """At a boot the VM's own clock may be a day ahead, until the service says how late it is."""
    machine = Machine(config=config(DRAIN), failing=frozenset({"unb"}))
    machine.show(seen(event()), NOW)
    machine.show(seen(), later(NOW, 86_400))
    assert "b" in machine.done
    machine.failing = frozenset()
    machine.show(seen(), later(NOW, 60))
    assert machine.done == set()


def test_of_several_undos_that_failed_the_first_that_is_due_is_waited_for() -> None:
    memory = remembered(config(DRAIN), event())
    memory = update_events(memory, seen(), config(DRAIN), ME, later(NOW, 1000))[0]
    for index, seconds in ((1, 5), (0, 30)):
        place = Place(event_id="E1", phase=Phase.SCHEDULED, index=index)
        retry_at = later(NOW, 1000 + seconds)
        memory = memory.with_action_state(
            place, ActionState(progress=Progress.UNDOING, retry_at=retry_at)
        )
    (step,) = decide(memory, Now(at=later(NOW, 1000)))
    assert isinstance(step, Wait)
    assert step.until == later(NOW, 1005)
