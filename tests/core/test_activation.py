"""An activation has a name of its own, and a scope can begin anew under another one."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fairwarning.core.commands import Activate, BeginAnew, Command, Schedule, Tick
from fairwarning.core.decide import Change, decide
from fairwarning.core.document import visible_events
from fairwarning.core.instants import DAY_MS, HOUR_MS, Instant
from fairwarning.core.journal_text import sentence
from fairwarning.core.model import EventType, Phase, Scope
from fairwarning.core.transitions import Activated
from tests.core.builders import E1, T0, names, web

WHY = "the store's past has changed"


def anew(scope: Scope, served_ms: Instant | None = None) -> BeginAnew:
    assert scope.activated_ms is not None
    return BeginAnew(
        activated_ms=scope.activated_ms, served_ms=served_ms or scope.activated_ms, reason=WHY
    )


def at(scope: Scope, command: Command, now: int) -> Change:
    return decide(scope, command, Instant(now))


def test_it_counts_from_one_again_and_shows_what_is_there() -> None:
    scope = at(web(), Schedule(event_id=E1, type=EventType.REBOOT, targets=names("web-0")), T0)
    before = scope.scope
    assert before.incarnation == 2
    change = at(before, anew(before), T0 + 5)
    assert change.transitions == (Activated(at_ms=Instant(T0 + 5), reason=WHY),)
    assert (change.scope.incarnation, change.scope.activated_ms) == (1, T0 + 5)
    assert visible_events(change.scope) == visible_events(before)
    assert sentence(change.transitions[0]) == f"activated anew: {WHY}"


def test_it_counts_from_one_also_if_an_event_starts_in_the_same_commit() -> None:
    announce = Schedule(event_id=E1, type=EventType.REBOOT, targets=names("web-0"))
    before = at(web(), announce, T0).scope
    change = at(before, anew(before), before.events[E1].not_before_ms)
    assert change.scope.events[E1].phase is Phase.STARTED
    assert change.scope.incarnation == 1


def test_several_who_ask_at_once_are_granted_it_once() -> None:
    before = web()
    asked = anew(before)
    once = at(before, asked, T0 + 5).scope
    assert at(once, asked, T0 + 5).transitions == ()
    assert at(once, asked, T0 + 50).transitions == ()


def test_a_scope_that_nobody_watches_stays_as_it_is() -> None:
    asked = anew(web())
    assert at(web(activated=False), asked, T0 + 5).transitions == ()


def test_a_scope_whose_last_sign_was_restored_from_long_ago_stays_awake() -> None:
    """Its instances poll; only the note of it is lost."""
    before = web()
    change = at(before, anew(before), T0 + 3 * DAY_MS)
    assert change.scope.activated_ms == T0 + 3 * DAY_MS
    assert at(change.scope, Tick(), T0 + 3 * DAY_MS + HOUR_MS).transitions == ()


def test_the_new_activation_is_later_than_the_one_that_was_served() -> None:
    """That one may be lost, and the clock of another server may be behind."""
    before = web()
    served = Instant(T0 + HOUR_MS)
    assert at(before, anew(before, served), T0 + 7).scope.activated_ms == served + 1


STEPS = st.tuples(st.sampled_from(["anew", "ask", "tick"]), st.integers(-3, 3))


@given(st.lists(STEPS, max_size=12), st.integers(0, 2))
def test_no_two_activations_share_a_name_however_the_clock_steps(
    steps: list[tuple[str, int]], days: int
) -> None:
    scope, now = web(activated=False), int(T0)
    found: list[Instant] = []
    for what, by in steps:
        now += by + by * days * DAY_MS
        command: Command = Tick() if what == "tick" else Activate()
        if what == "anew" and scope.is_activated:
            command = anew(scope)
        change = at(scope, command, now)
        found += [each.at_ms for each in change.transitions if isinstance(each, Activated)]
        scope = change.scope
    assert len(set(found)) == len(found)


def test_an_activation_after_a_deactivation_is_later_even_if_the_clock_is_not() -> None:
    scope = web()
    switched_off = at(scope, Tick(), T0 + 2 * DAY_MS).scope
    assert not switched_off.is_activated
    again = at(switched_off, Activate(), T0).scope
    assert again.activated_ms is not None
    assert scope.activated_ms is not None
    assert again.activated_ms > scope.activated_ms


def test_a_note_of_an_instance_that_is_ahead_changes_nothing_for_an_activation_in_time() -> None:
    scope = replace(web(activated=False), last_seen_ms=Instant(T0 - 1))
    assert at(scope, Activate(), T0).scope.activated_ms == T0
