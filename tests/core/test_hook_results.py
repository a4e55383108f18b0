"""Hooks are counted once, by the node that has the work, and never change how an impact went."""

import pytest
from msgspec.structs import replace

from fairwarning.core import transitions
from fairwarning.core.commands import (
    Declare,
    ReportDone,
    ReportFailure,
    ReportHook,
    Schedule,
    Tick,
)
from fairwarning.core.decide import Change, decide
from fairwarning.core.hooks import HOOK_OUTPUT_CHARS_MAX, Hook, Hooks, HookStage, OnFailure
from fairwarning.core.instants import SECOND_MS, Instant
from fairwarning.core.limits import Timing
from fairwarning.core.model import EventType, HookProgress, NodeId, Phase, Scope, Work
from fairwarning.core.refusals import Refused
from tests.core.builders import E1, T0, names, web

NODE, OTHER = NodeId("n1"), NodeId("n2")
TIMING = Timing(attempts_max=2)
BEFORE, AFTER = HookStage.BEFORE, HookStage.AFTER
NEVER_FAILS = Hook(run=("off",), on_failure=OnFailure.GO_ON)
HOOKS = Hooks(before=(NEVER_FAILS, Hook(run=("/bin/flush", "secret"))), after=(Hook(run=("on",)),))
FREEZE = Schedule(event_id=E1, type=EventType.FREEZE, targets=names("web-0"), already_happened=True)


def started(hooks: Hooks = HOOKS) -> Scope:
    scope = web()
    scope = replace(scope, roster=replace(scope.roster, hooks=hooks))
    return decide(scope, FREEZE, T0, timing=TIMING, node=NODE).scope


def hook(stage: HookStage, number: int, *, is_done: bool = True, attempt: int = 1) -> ReportHook:
    return ReportHook(
        event_id=E1,
        attempt=attempt,
        node=NODE,
        stage=stage,
        number=number,
        is_done=is_done,
        tries=1,
        took_ms=84,
        result="exit code 0" if is_done else "exit code 1",
        output="x" * 3_000,
    )


def say(scope: Scope, *commands: ReportHook | ReportDone | ReportFailure) -> Change:
    for command in commands:
        change = decide(scope, command, T0, timing=TIMING, node=NODE)
        scope = change.scope
    return change


def work_of(scope: Scope) -> Work:
    work = scope.events[E1].work
    assert work is not None
    return work


def kinds(change: Change) -> list[str]:
    return [type(each).__name__ for each in change.transitions]


def test_each_hook_is_counted_and_the_event_ends_with_the_last_one() -> None:
    change = say(started(), hook(BEFORE, 1), hook(BEFORE, 2))
    assert work_of(change.scope).hooks == HookProgress(before=2, ready_ms=T0)
    change = say(change.scope, ReportDone(event_id=E1))
    assert kinds(change) == ["ImpactEnded"]
    assert change.scope.events[E1].phase is Phase.STARTED
    change = say(change.scope, hook(AFTER, 1))
    assert kinds(change) == ["HookFinished", "Completed", "DocumentChanged"]
    assert change.scope.events[E1].phase is Phase.COMPLETED


def test_without_hooks_a_report_ends_the_event_at_once() -> None:
    change = say(started(Hooks()), ReportDone(event_id=E1))
    assert kinds(change) == ["Completed", "DocumentChanged"]


def test_a_hook_that_may_fail_does_not_keep_the_impact_back() -> None:
    change = say(started(), hook(BEFORE, 1, is_done=False))
    assert kinds(change) == ["HookFinished"]
    assert work_of(change.scope).hooks.outcome is None


@pytest.mark.parametrize("after", [(), HOOKS.after])
def test_a_hook_that_must_not_fail_fails_the_event(after: tuple[Hook, ...]) -> None:
    scope = started(replace(HOOKS, after=after))
    change = say(scope, hook(BEFORE, 1), hook(BEFORE, 2, is_done=False))
    if after:
        assert kinds(change) == ["HookFinished", "ImpactEnded"]
        change = say(change.scope, hook(AFTER, 1))
    event = change.scope.events[E1]
    assert event.phase is Phase.FAILED
    assert event.outcome == "hook before 2 (flush) failed: exit code 1"


@pytest.mark.parametrize(
    "late",
    [
        hook(BEFORE, 1),  # Counted already.
        hook(BEFORE, 3),  # There is none.
        hook(AFTER, 1),  # The impact is not over.
        hook(BEFORE, 2, attempt=2),
        replace(hook(BEFORE, 2), node=OTHER),
    ],
)
def test_a_report_that_is_not_due_changes_nothing(late: ReportHook) -> None:
    scope = say(started(), hook(BEFORE, 1)).scope
    assert say(scope, late).transitions == ()


def test_a_hook_after_the_impact_that_fails_changes_no_outcome() -> None:
    change = say(started(), ReportDone(event_id=E1), hook(AFTER, 1, is_done=False))
    assert change.scope.events[E1].phase is Phase.COMPLETED


def test_an_impact_that_failed_for_the_last_time_has_its_hooks_too() -> None:
    failed = ReportFailure(event_id=E1, attempt=1, reason="no")
    scope = decide(started(), failed, T0, timing=TIMING, node=NODE).scope
    retry = Instant(T0 + TIMING.backoff_ms)
    scope = decide(scope, Tick(), retry, timing=TIMING, node=NODE).scope
    change = say(scope, replace(failed, attempt=2))
    assert kinds(change) == ["ImpactEnded"]
    assert (work_of(change.scope).node, work_of(change.scope).attempt) == (NODE, 2)
    event = say(change.scope, hook(AFTER, 1, attempt=2)).scope.events[E1]
    assert (event.phase, event.outcome) == (Phase.FAILED, "gave up after attempt 2: no")


@pytest.mark.parametrize("later", [ReportDone(event_id=E1), ReportFailure], ids=["done", "failed"])
def test_the_first_report_about_the_impact_counts(later: object) -> None:
    scope = say(started(), ReportDone(event_id=E1)).scope
    if later is ReportFailure:
        later = ReportFailure(event_id=E1, attempt=1, reason="no")
    assert isinstance(later, ReportDone | ReportFailure)
    assert say(scope, later).transitions == ()


def test_what_was_counted_is_kept_when_another_node_takes_over() -> None:
    scope = say(started(), hook(BEFORE, 1)).scope
    lost = Instant(T0 + TIMING.lease_ms)
    scope = decide(scope, Tick(), lost, timing=TIMING, node=OTHER).scope
    assert (work_of(scope).node, work_of(scope).hooks.before) == (OTHER, 1)


def test_a_silent_node_leaves_the_hooks_after_the_impact_to_another_one() -> None:
    scope = say(started(), ReportDone(event_id=E1)).scope
    lost = Instant(T0 + TIMING.lease_ms)
    change = decide(scope, Tick(), lost, timing=TIMING, node=OTHER)
    assert kinds(change) == ["AttemptLost", "HandedOver"]
    assert work_of(change.scope).hooks.outcome is Phase.COMPLETED


def test_an_impact_that_is_given_up_is_handed_over_for_its_hooks() -> None:
    timing = Timing(handovers_max=1)
    lost = Instant(T0 + timing.lease_ms)
    change = decide(started(), Tick(), lost, timing=timing, node=OTHER)
    assert kinds(change) == ["ImpactEnded", "AttemptLost", "HandedOver"]
    again = Instant(lost + timing.lease_ms)
    event = decide(change.scope, Tick(), again, timing=timing, node=OTHER).scope.events[E1]
    assert event.phase is Phase.FAILED
    assert event.outcome == "gave up after attempt 1: every node that had it fell silent"


def test_an_attempt_has_the_time_of_all_hooks_in_addition() -> None:
    slow = Hook(run=("x",), timeout_ms=60_000, retries=2, pause_ms=1_000)
    scope = started(Hooks(before=(slow,), after=(slow,)))
    plain = work_of(started(Hooks())).attempt_until_ms
    assert plain is not None
    assert work_of(scope).attempt_until_ms == plain + 2 * (3 * 60 + 2) * SECOND_MS


def test_events_whose_hooks_are_no_longer_there_end() -> None:
    """A node of a version without hooks may have stored the scope."""
    scope = say(started(), ReportDone(event_id=E1)).scope
    scope = replace(scope, roster=replace(scope.roster, hooks=Hooks()))
    assert decide(scope, Tick(), T0).scope.events[E1].phase is Phase.COMPLETED


def test_the_output_is_cut_at_its_beginning() -> None:
    (finished,) = say(started(), hook(BEFORE, 1)).transitions
    assert isinstance(finished, transitions.HookFinished)
    assert len(finished.output) == HOOK_OUTPUT_CHARS_MAX


def test_hooks_cannot_change_under_an_event_that_has_started() -> None:
    scope = started()
    wanted = replace(scope.roster, hooks=Hooks())
    with pytest.raises(Refused, match="its hooks would change"):
        decide(scope, Declare(roster=wanted, force=True), T0)
