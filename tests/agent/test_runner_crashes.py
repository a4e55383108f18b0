"""kill -9 at any instant ends in the same state: everything is undone, nothing is forgotten."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from fairwarning.agent.config.model import Action, Approve, Config, OnFailure, Rule, When
from fairwarning.client.changes import Seen
from fairwarning.client.model import Event, Status
from tests.agent.machine import Machine, later
from tests.agent.values import NOW, action, config, event

STAGES = 6
STAGE_S = 60


@dataclass(frozen=True, kw_only=True)
class Life:
    """When an event is announced, starts and is gone, in stages; it may start without notice."""

    announced: int
    started: int
    gone: int

    def at(self, stage: int, id: str) -> Event | None:
        if not self.announced <= stage < self.gone:
            return None
        shown = event(id, notice_s=STAGE_S * STAGES)
        if stage >= self.started:
            return replace(shown, status=Status.STARTED, not_before=None)
        return shown


@st.composite
def lives(draw: st.DrawFn) -> Life:
    announced = draw(st.integers(0, STAGES - 2))
    gone = draw(st.integers(announced + 1, STAGES - 1))
    return Life(announced=announced, started=draw(st.integers(announced, STAGES)), gone=gone)


def actions(names: str, *, has_undo: bool = True) -> st.SearchStrategy[tuple[Action, ...]]:
    one = st.builds(
        action,
        st.sampled_from(names),
        on_failure=st.sampled_from(OnFailure),
        has_undo=st.just(has_undo),
    )
    return st.lists(one, max_size=3, unique_by=lambda each: each.settings).map(tuple)


RULES = st.builds(
    Rule,
    name=st.just("r"),
    approve=st.builds(Approve, when=st.sampled_from([When.SUCCESS, When.NEVER])),
    scheduled=actions("abc"),
    started=actions("cd"),
    finished=actions("fg", has_undo=False),
    cancelled=actions("xy", has_undo=False),
)


def play(
    rules: Config,
    history: list[Life],
    failing: frozenset[str],
    crashes: Iterable[int] = (),
    seed: int = 0,
    *,
    stays_down: bool = False,
) -> Machine:
    machine = Machine(
        config=rules,
        failing=failing,
        crashes=frozenset(crashes),
        dice=random.Random(seed),
        stays_down=stays_down,
    )
    for stage in range(STAGES):
        shown = (life.at(stage, f"E{n}") for n, life in enumerate(history))
        events = {each.id: each for each in shown if each is not None}
        machine.show(Seen(incarnation=stage, events=events), later(NOW, stage * STAGE_S))
    machine.settle(end())
    return machine


def end() -> datetime:
    return later(NOW, STAGES * STAGE_S * 2)


def outcome(machine: Machine) -> tuple[object, ...]:
    """What is left behind, and which one-off actions were run."""
    once = {each for each in machine.history if each.partition(":")[0] in ("finished", "cancelled")}
    return machine.done & set("abcd"), machine.memory.records, machine.approved, once


@settings(max_examples=300)
@given(
    rule=RULES,
    history=st.lists(lives(), min_size=1, max_size=3),
    failing=st.frozensets(st.sampled_from(["a", "b", "c", "d", "una", "unc", "f"])),
    seed=st.integers(0, 1000),
    crashes=st.frozensets(st.integers(1, 80), max_size=6),
)
def test_any_crashes_in_any_story_end_the_same(
    rule: Rule, history: list[Life], failing: frozenset[str], seed: int, crashes: frozenset[int]
) -> None:
    calm = play(config(rule), history, failing, seed=seed)
    assert outcome(calm)[:2] == (set(), {}), "all is undone, and nothing is left to do"
    shaken = play(config(rule), history, failing, crashes, seed)
    assert outcome(shaken) == outcome(calm)


@settings(max_examples=300)
@given(
    rule=RULES,
    history=st.lists(lives(), min_size=1, max_size=3),
    failing=st.frozensets(st.sampled_from(["a", "b", "c", "d", "una", "unc", "f"])),
    seed=st.integers(0, 1000),
    crashes=st.frozensets(st.integers(1, 80), min_size=1, max_size=6),
)
def test_an_agent_that_is_down_for_a_while_undoes_all_that_it_did(
    rule: Rule, history: list[Life], failing: frozenset[str], seed: int, crashes: frozenset[int]
) -> None:
    """It may miss the start or the end of an event, or its VM is what is rebooted."""
    shaken = play(config(rule), history, failing, crashes, seed, stays_down=True)
    assert outcome(shaken)[:2] == (set(), {})


def test_a_crash_at_each_single_instant() -> None:
    """Every instant of one history with two events that share an action, one after the other."""
    rule = Rule(
        name="r",
        scheduled=(action("a"), action("b")),
        started=(action("c"),),
        finished=(action("f", has_undo=False),),
    )
    history = [Life(announced=0, started=2, gone=4), Life(announced=1, started=3, gone=5)]
    calm = play(config(rule), history, frozenset({"una"}))
    assert calm.instants > 60
    for instant in range(1, calm.instants + 1):
        shaken = play(config(rule), history, frozenset({"una"}), [instant])
        assert outcome(shaken) == outcome(calm), f"killed at instant {instant}"
        down = play(config(rule), history, frozenset({"una"}), [instant], stays_down=True)
        assert outcome(down)[:2] == (set(), {}), f"down from instant {instant}"


def test_a_crash_after_every_single_instant_but_progress() -> None:
    """An agent that is killed again and again, each time a little later, still gets there."""
    rule = Rule(name="r", scheduled=(action("a"),), finished=(action("f", has_undo=False),))
    history = [Life(announced=0, started=2, gone=4)]
    calm = play(config(rule), history, frozenset())
    shaken = play(config(rule), history, frozenset(), range(3, 400, 7))
    assert outcome(shaken) == outcome(calm)
