"""Which scopes begin anew when the store has stepped back."""

import pytest
from msgspec.structs import replace

from fairwarning.core.commands import Cancel, Schedule
from fairwarning.core.instants import Instant
from fairwarning.core.model import EventType, Scope
from fairwarning.engine.scope_view import View
from fairwarning.engine.step_back import StepBack, must_begin_anew
from tests.core.builders import E1, E2, T0, after, names, web

LATER, EARLIER = Instant(T0 + 10), Instant(T0 - 10)
EMPTY = replace(web(), revision=5)


def with_event(scope: Scope, id: str = E1) -> Scope:
    command = Schedule(event_id=E1 if id == E1 else E2, type=EventType.REBOOT,
                       targets=names("web-0"))  # fmt: skip
    return replace(after(scope, command), revision=scope.revision + 1)


def served(scope: Scope) -> View:
    view = View(scope.id, is_test=False)
    view.put(scope)
    return view


def since(common_ms: Instant | None, *lost: Scope) -> StepBack:
    return StepBack(common_ms=common_ms, lost=frozenset(each.id for each in lost))


ONE = with_event(EMPTY)
GONE = replace(after(ONE, Cancel(event_id=E1)), revision=7)
OFF = replace(EMPTY, activated_ms=None, incarnation=0)
NEW = replace(EMPTY, activated_ms=Instant(LATER + 1), revision=6)

CASES = {
    "nothing differs": (EMPTY, EMPTY, since(LATER), False),
    "a later revision was served": (ONE, EMPTY, since(LATER), True),
    "the same was served, but more in between": (EMPTY, EMPTY, since(LATER, EMPTY), True),
    "what is stored is newer, because the news is on its way": (EMPTY, ONE, since(LATER), False),
    "what is stored is newer, and it lost something": (EMPTY, GONE, since(LATER, EMPTY), True),
    "what is stored is newer, and nobody knows what is lost": (EMPTY, ONE, since(None), True),
    "the same revision with another document": (
        ONE, with_event(EMPTY, E2), since(LATER), True,
    ),
    "nobody is watching": (ONE, OFF, since(LATER, ONE), False),
    "it was switched off in the lost past": (OFF, EMPTY, since(LATER), True),
    "another node has begun anew already": (ONE, NEW, since(LATER, ONE), False),
    "an older activation is back": (NEW, EMPTY, since(LATER), True),
    "an activation that may be of the lost past": (ONE, NEW, since(None), True),
}  # fmt: skip


@pytest.mark.parametrize(("view", "stored", "step_back", "is_needed"), CASES.values(), ids=CASES)
def test_it_begins_anew(view: Scope, stored: Scope, step_back: StepBack, is_needed: bool) -> None:
    assert must_begin_anew(served(view), stored, step_back) is is_needed


def test_an_activation_that_was_shown_before_is_not_new_although_its_name_is_later() -> None:
    """One that begins anew is named after a later instant than all that were shown."""
    view = served(NEW)
    view.put(replace(NEW, activated_ms=Instant(NEW.activated_ms + 5), revision=9))  # type: ignore[operator]
    assert must_begin_anew(view, NEW, since(LATER))


def test_two_at_once_are_one_that_went_as_far_back() -> None:
    first, second = since(LATER, EMPTY), since(EARLIER)
    assert second.joined(first) == since(EARLIER, EMPTY)
    assert first.joined(second) == since(EARLIER, EMPTY)
    assert first.joined(since(None)) == since(None, EMPTY)
    assert since(None).joined(first) == since(None, EMPTY)
    assert first.joined(None) == first
