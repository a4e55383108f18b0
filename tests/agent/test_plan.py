"""What is done when: the order, the deadline, approval and undoing, example by example."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fairwarning.agent import state_changes
from fairwarning.agent.approval import Answer, Facts
from fairwarning.agent.config.model import (
    Approve,
    Concerns,
    Hold,
    OnFailure,
    Phase,
    Rule,
    Shared,
    When,
)
from fairwarning.agent.plan import Now, deadline, decide
from fairwarning.agent.records import Place
from fairwarning.agent.state_changes import update_events
from fairwarning.agent.steps import (
    Adopt,
    AskPeers,
    CheckHold,
    Do,
    Drop,
    Forget,
    Report,
    Skip,
    Step,
    Undo,
    Wait,
    Work,
)
from fairwarning.agent.steps import Approve as ApproveStep
from fairwarning.client.model import Event, Status
from tests.agent.machine import Machine, later, remembered, seen, started
from tests.agent.values import DRAIN, ME, NOW, action, config, event


def test_an_event_from_its_announcement_to_its_end() -> None:
    rule = replace(
        DRAIN,
        started=(action("s"),),
        finished=(action("f", has_undo=False),),
        cancelled=(action("c", has_undo=False),),
    )
    machine = Machine(config=config(rule))
    machine.show(seen(event()), NOW)
    assert machine.history == ["scheduled:a", "scheduled:b"]
    assert machine.approved == {"E1"}
    machine.show(seen(started(event())), later(NOW, 10))
    machine.show(seen(), later(NOW, 60))
    assert machine.history[2:] == ["started:s", "undo:s", "undo:b", "undo:a", "finished:f"]
    assert machine.memory.records == {}


def test_a_cancelled_event_is_undone_too() -> None:
    rule = replace(DRAIN, approve=Approve(when=When.NEVER),
                   cancelled=(action("c", has_undo=False),))  # fmt: skip
    machine = Machine(config=config(rule))
    machine.show(seen(event()), NOW)
    machine.show(seen(), later(NOW, 60))
    assert machine.history[2:] == ["undo:b", "undo:a", "cancelled:c"]
    assert not machine.approved


def test_an_event_that_appears_started_is_not_prepared_for() -> None:
    rule = replace(DRAIN, started=(action("s"),))
    machine = Machine(config=config(rule))
    machine.show(seen(event(status=Status.STARTED)), NOW)
    assert (machine.history, machine.approved) == (["started:s"], set())
    machine.show(seen(), later(NOW, 60))
    assert machine.done == set()


@pytest.mark.parametrize("when", [When.SUCCESS, When.ALWAYS, When.NEVER])
def test_a_failed_drain_is_approved_only_if_it_was_asked_for(when: When) -> None:
    rule = replace(DRAIN, approve=Approve(when=when))
    machine = Machine(config=config(rule), failing=frozenset("a"))
    machine.show(seen(event()), NOW)
    assert machine.history == ["scheduled:a"], "the rest is left out"
    assert machine.approved == ({"E1"} if when is When.ALWAYS else set())
    machine.settle(later(NOW, 1000))
    assert machine.done == set(), "also what failed may be half done"


def test_a_failure_that_does_not_matter() -> None:
    rule = replace(DRAIN, scheduled=(action("a", on_failure=OnFailure.CONTINUE), action("b")))
    machine = Machine(config=config(rule), failing=frozenset("a"))
    machine.show(seen(event()), NOW)
    assert machine.history == ["scheduled:a", "scheduled:b"]
    assert machine.approved == {"E1"}


def test_what_takes_too_long_is_cut_off_and_the_rest_left_out() -> None:
    machine = Machine(config=config(DRAIN), hanging=frozenset("a"))
    until = machine.show(seen(event()), NOW)
    assert until == later(NOW, 900 - 30), "the margin is kept free"
    assert machine.running
    machine.show(seen(event()), until)
    assert not machine.running
    assert machine.history == ["scheduled:a"]
    assert machine.approved == set()
    whys = [each.why for each in machine.memory.records["E1"].action_states.values()]
    assert whys == ["cut off: no time is left before the event",
                    "no time is left before the event"]  # fmt: skip
    machine.settle(later(NOW, 1000))
    assert machine.done == set()


@pytest.mark.parametrize(("shown", "why"), [
    (started(event()), "the event has started"), (None, "the event is over"),
])  # fmt: skip
def test_news_of_the_event_cut_off_what_is_running(shown: Event | None, why: str) -> None:
    machine = Machine(config=config(DRAIN), hanging=frozenset("a"))
    machine.show(seen(event()), NOW)
    machine._until_idle(seen(*([shown] if shown else [])), later(NOW, 5))
    assert not machine.running
    if shown:
        assert machine.memory.records["E1"].action_states["scheduled/0"].why == f"cut off: {why}"
    else:
        assert machine.done == set()


def test_an_eviction_leaves_most_of_its_notice_for_the_actions() -> None:
    memory = remembered(config(DRAIN), event(type="Preempt", notice_s=30))
    assert deadline(memory.records["E1"]) == later(NOW, 22.5)


def test_a_neighbours_event_runs_its_actions_and_is_never_approved() -> None:
    rule = replace(DRAIN, concerns=Concerns.OTHERS, approve=Approve(when=When.ALWAYS))
    machine = Machine(config=config(rule))
    machine.show(seen(event(resources=("web-1",))), NOW)
    assert machine.history == ["scheduled:a", "scheduled:b"]
    assert not machine.approved


def test_an_event_that_no_rule_fits_is_left_alone() -> None:
    machine = Machine(config=config(replace(DRAIN, types=("Freeze",))))
    machine.show(seen(event()), NOW)
    machine.show(seen(), later(NOW, 60))
    assert (machine.history, machine.approved, machine.memory.records) == ([], set(), {})


def test_what_two_events_need_is_done_once_and_undone_with_the_last() -> None:
    machine = Machine(config=config(DRAIN))
    machine.show(seen(event("E1")), NOW)
    machine.show(seen(event("E1"), event("E2")), later(NOW, 1))
    assert machine.history == ["scheduled:a", "scheduled:b"]
    assert machine.approved == {"E1", "E2"}
    machine.show(seen(event("E2")), later(NOW, 2))
    assert machine.done == {"a", "b"}
    machine.show(seen(), later(NOW, 3))
    assert machine.done == set()
    assert machine.history[2:] == ["undo:b", "undo:a"]


def test_what_is_never_undone_keeps_nothing_for_the_next_event() -> None:
    rule = Rule(name="r", finished=(action("a"),))
    memory = remembered(config(rule), event())
    place = Place(event_id="E1", phase=Phase.FINISHED, index=0)
    memory = state_changes.keep_value(memory, place, "was", "up")
    assert state_changes.record_step(memory, Forget(event_id="E1")).kept == {}
    both = update_events(memory, seen(event(), event("E2")), config(rule), ME, NOW)[0]
    assert state_changes.record_step(both, Forget(event_id="E1")).kept == memory.kept


def policy_steps(policy: Approve, shown: Event, facts: Facts, after_s: float = 0) -> list[Step]:
    rules = config(Rule(name="r", approve=policy))
    return decide(remembered(rules, shown), Now(at=later(NOW, after_s), facts=facts))


SHARED = event(resources=("web-0", "web-1"))


MINE = Facts(me="web-0")


def test_a_shared_event_is_approved_by_its_leader_alone() -> None:
    leader = Approve(shared=Shared.LEADER)
    assert policy_steps(leader, SHARED, MINE) == [ApproveStep(event_id="E1")]
    other = event(resources=("web-1", "web-0"))
    assert policy_steps(leader, other, MINE) == []


def test_or_by_whoever_sees_that_all_are_ready() -> None:
    assert policy_steps(Approve(), SHARED, MINE) == [Report(event_id="E1")]
    memory = remembered(config(Rule(name="r")), SHARED)
    memory = memory.with_record(replace(memory.records["E1"], is_reported=True))

    def steps(heard: Answer | None, after_s: float = 0) -> list[Step]:
        facts = Facts(me="web-0", peers={} if heard is None else {"E1": heard})
        return decide(memory, Now(at=later(NOW, after_s), facts=facts))

    assert steps(None) == [AskPeers(event_id="E1")]
    waiting = Answer(at=NOW, waiting=("web-1",))
    (wait,) = steps(waiting)
    assert isinstance(wait, Wait)
    assert steps(waiting, 2) == [AskPeers(event_id="E1")]
    assert steps(Answer(at=NOW)) == [ApproveStep(event_id="E1")]


def test_approval_waits_for_its_lead_time() -> None:
    lead = Approve(lead_s=120)
    (wait,) = policy_steps(lead, event(), MINE)
    assert isinstance(wait, Wait)
    assert wait.until == later(NOW, 780)
    assert policy_steps(lead, event(), MINE, 780) == [ApproveStep(event_id="E1")]


def test_approval_is_held_while_the_command_says_so() -> None:
    hold = Hold(command=("healthy",), every_s=10)
    policy = Approve(hold=hold)
    assert policy_steps(policy, event(), MINE) == [CheckHold(event_id="E1", hold=hold)]
    held = Facts(me="web-0", holds={"E1": Answer(at=NOW, waiting=("2 of 5",))})
    (wait,) = policy_steps(policy, event(), held)
    assert isinstance(wait, Wait)
    assert policy_steps(policy, event(), held, 10) == [CheckHold(event_id="E1", hold=hold)]
    free = Facts(me="web-0", holds={"E1": Answer(at=NOW)})
    assert policy_steps(policy, event(), free, 9) == [ApproveStep(event_id="E1")]
    assert policy_steps(policy, event(), free, 11) == [CheckHold(event_id="E1", hold=hold)]


@pytest.mark.parametrize("shown", [(started(event()),), ()])
def test_nothing_waits_for_a_question_about_approving_once_it_is_too_late(
    shown: tuple[Event, ...],
) -> None:
    hold = Hold(command=("healthy",))
    rule = Rule(name="r", approve=Approve(hold=hold), started=(action("s"),))
    memory = remembered(config(rule), event())
    asking = CheckHold(event_id="E1", hold=hold)
    assert decide(memory, Now(at=NOW, facts=MINE, running={"E1": asking})) == []
    memory, _ = update_events(memory, seen(*shown), config(rule), ME, NOW)
    to_approval: tuple[Work, ...] = (
        asking, AskPeers(event_id="E1"), Report(event_id="E1"), ApproveStep(event_id="E1"),
    )  # fmt: skip
    for question in to_approval:
        now = Now(at=NOW, facts=MINE, running={"E1": question})
        assert decide(memory, now) == [Drop(event_id="E1")]


def test_an_approval_that_failed_is_tried_again() -> None:
    put_off = Facts(me="web-0", not_again_before={"E1": later(NOW, 4)})
    (wait,) = policy_steps(Approve(), event(), put_off)
    assert isinstance(wait, Wait)
    assert policy_steps(Approve(), event(), put_off, 4) == [ApproveStep(event_id="E1")]


def test_a_clock_that_was_set_back_holds_up_no_approval() -> None:
    hour = later(NOW, 3_600)
    put_off = Facts(me="web-0", not_again_before={"E1": hour})
    assert policy_steps(Approve(), event(), put_off) == [ApproveStep(event_id="E1")]
    hold = Hold(command=("healthy",))
    held = Facts(me="web-0", holds={"E1": Answer(at=hour, waiting=("2 of 5",))})
    assert policy_steps(Approve(hold=hold), event(), held) == [CheckHold(event_id="E1", hold=hold)]
    memory = state_changes.complete_step(
        remembered(config(Rule(name="r")), SHARED), Report(event_id=SHARED.id)
    )
    unready = Facts(me="web-0", peers={"E1": Answer(at=hour, waiting=("web-1",))})
    assert decide(memory, Now(at=NOW, facts=unready)) == [AskPeers(event_id="E1")]


def test_a_new_config_changes_nothing_for_an_event_that_is_known() -> None:
    machine = Machine(config=config(DRAIN))
    machine.show(seen(event()), NOW)
    machine.config = config(Rule(name="other", finished=(action("x"),)))
    machine.show(seen(started(event())), later(NOW, 1))
    machine.show(seen(), later(NOW, 60))
    assert machine.history[2:] == ["undo:b", "undo:a"]


def test_without_time_nothing_is_begun() -> None:
    memory = remembered(config(DRAIN), event())
    (step,) = decide(memory, Now(at=later(NOW, 870), facts=MINE))
    assert isinstance(step, Skip)
    (step,) = decide(memory, Now(at=later(NOW, 869.9), facts=MINE))
    assert isinstance(step, Do)
    assert step.ends_at == NOW + timedelta(seconds=870)
    assert step.place.phase is Phase.SCHEDULED


def test_what_was_left_out_for_lack_of_time_is_not_approved() -> None:
    memory = remembered(config(DRAIN), event())
    now = Now(at=later(NOW, 890))
    while steps := decide(memory, now):
        (step,) = steps
        assert isinstance(step, Skip), "nobody is ready, so nobody may approve"
        memory = state_changes.record_step(memory, step)


def test_what_failed_for_another_event_is_done_and_not_taken_for_done() -> None:
    rule = Rule(name="drain", scheduled=(action("a"),))
    memory = remembered(config(rule), event("E1"), event("E2"))
    first, second = (Place(event_id=id, phase=Phase.SCHEDULED, index=0) for id in ("E1", "E2"))
    failed = state_changes.fail_step(memory, Do(place=first, ends_at=None), "no", NOW)
    assert [type(step) for step in decide(failed, Now(at=NOW))] == [Do]
    done = state_changes.complete_step(memory, Do(place=first, ends_at=None))
    assert Adopt(place=second) in decide(done, Now(at=NOW))


def test_before_the_service_has_answered_only_what_is_owed_is_done() -> None:
    """The VM's own clock may be wrong after its boot, and say that every deadline is over."""
    machine = Machine(config=config(DRAIN))
    machine.show(seen(event("E1")), NOW)
    memory, _ = update_events(machine.memory, seen(event("E2")), config(DRAIN), ME, NOW)
    wrong = later(NOW, 1_000_000)
    (step,) = decide(memory, Now(at=wrong, facts=MINE, is_certain=False))
    assert isinstance(step, Undo)
    assert len(decide(memory, Now(at=wrong, facts=MINE))) == 2


def test_an_event_that_may_have_been_approved_counts_as_finished() -> None:
    """Killed between the approval and its note: the service may have heard it."""
    memory = remembered(config(Rule(name="r")), event())
    begun = state_changes.begin_step(memory, ApproveStep(event_id="E1"))
    for known, phase in ((memory, Phase.CANCELLED), (begun, Phase.FINISHED)):
        after, _ = update_events(known, seen(), config(), ME, later(NOW, 5))
        assert after.records["E1"].phase is phase


def test_an_event_of_days_ahead_waits_until_it_is_near() -> None:
    far = replace(event(), not_before=NOW + timedelta(days=3))
    memory = remembered(config(DRAIN), far)
    (waits,) = decide(memory, Now(at=NOW))
    assert isinstance(waits, Wait)
    assert waits.until == NOW + timedelta(days=3) - timedelta(hours=1)
    assert waits.until is not None
    (does,) = decide(memory, Now(at=waits.until))
    assert isinstance(does, Do)
