"""Which entries a target wants, when to try again, and which node may send. All pure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.core.instants import HOUR_MS, later
from fairwarning.core.model import EventType, ScopeId, Source
from fairwarning.engine.protocols import Position
from fairwarning.notifications.delivery import (
    JITTER,
    LEASE_MS,
    PAUSES_MS,
    is_free_for,
    may_want,
    needs_renewal,
    next_try_ms,
    taken_by,
    wants,
)
from fairwarning.notifications.model import (
    ALL_KINDS,
    Filters,
)
from fairwarning.notifications.records import Cursor
from fairwarning.notifications.sender import CHAT_TIMEOUT_S
from tests.core.builders import T0
from tests.notifications.entries import REBOOT, WEB_ID, entry


@pytest.mark.parametrize(
    ("filters", "is_wanted"),
    [
        (Filters(), True),
        (Filters(kinds=("Started",)), False),
        (Filters(types=(EventType.REBOOT, EventType.FREEZE)), True),
        (Filters(types=(EventType.FREEZE,)), False),
        (Filters(sources=(Source.PLATFORM,)), True),
        (Filters(sources=(Source.USER,)), False),
        (Filters(scopes=("web",)), True),
        (Filters(scopes=("availability-set/web", "db")), True),
        (Filters(scopes=(WEB_ID,)), True),
        (Filters(scopes=("eb",)), False),
        (Filters(scopes=("default",)), False),
    ],
)
def test_filters(filters: Filters, is_wanted: bool) -> None:
    assert (may_want(filters, entry()) and wants(filters, REBOOT)) is is_wanted


def test_a_scale_set_is_meant_with_all_its_groups_or_with_one() -> None:
    second = entry(scope_id=ScopeId("0000/default/scale-set/workers/1"))
    assert may_want(Filters(scopes=("workers",)), second)
    assert may_want(Filters(scopes=("0000/default/scale-set/workers",)), second)
    assert may_want(Filters(scopes=("workers/1",)), second)
    assert not may_want(Filters(scopes=("workers/0",)), second)


def test_whoever_asks_for_a_type_or_source_wants_events_only() -> None:
    assert wants(Filters(), None)
    assert not wants(Filters(types=(EventType.REBOOT,)), None)
    assert not wants(Filters(sources=(Source.USER,)), None)


def test_housekeeping_is_no_kind_because_the_journal_has_none() -> None:
    assert "LeaseRenewed" not in ALL_KINDS
    assert {"Scheduled", "AttemptFailed", "Noted", "RosterDeclared"} <= ALL_KINDS


@given(st.integers(1, 20), st.floats(0, 1, exclude_max=True))
def test_pauses_stay_near_the_table_and_end_with_it(attempts: int, dice: float) -> None:
    again = next_try_ms(attempts, T0, dice)
    if attempts > len(PAUSES_MS):
        assert again is None
    else:
        assert again is not None
        pause = PAUSES_MS[attempts - 1]
        assert pause * (1 - JITTER) - 1 <= again - T0 <= pause * (1 + JITTER) + 1


def test_a_lease_keeps_others_away_until_it_runs_out_or_the_clock_was_set_back() -> None:
    taken = taken_by("a", Cursor(position=Position("1")), T0)
    assert is_free_for("a", taken, T0)
    assert not is_free_for("b", taken, T0)
    assert not is_free_for("b", taken, type(T0)(T0 + LEASE_MS - 1))
    assert is_free_for("b", taken, type(T0)(T0 + LEASE_MS))
    assert is_free_for("b", taken, type(T0)(T0 - HOUR_MS))
    assert is_free_for("b", Cursor(position=Position("1")), T0)


def test_a_lease_is_renewed_when_half_of_it_is_over() -> None:
    """A try takes no longer than the other half."""
    taken = taken_by("a", Cursor(position=Position("1")), T0)
    assert not needs_renewal(taken, later(T0, LEASE_MS // 2))
    assert needs_renewal(taken, later(T0, LEASE_MS // 2 + 1))
    assert CHAT_TIMEOUT_S * 1000 <= LEASE_MS // 2
