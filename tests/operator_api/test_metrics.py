"""What the figures say of commits, deadlines and requests, one at a time."""

import time
from types import SimpleNamespace
from typing import cast

import pytest
from msgspec.structs import replace

from fairwarning.core.instants import HOUR_MS, MINUTE_MS, Instant, later
from fairwarning.core.model import EventType, Phase, ScopeId, StartCause
from fairwarning.core.transitions import Approved, Started, Transition
from fairwarning.engine.protocols import Due, Receipt, Store, StoreCondition
from fairwarning.engine.service import Engine
from fairwarning.operator_api.metrics import Metrics
from tests.core.builders import T0, web
from tests.notifications.entries import REBOOT
from tests.operator_api.rig import ME
from tests.operator_api.test_health import value
from tests.support.patience import HANG_S

NOT_BEFORE = later(T0, 15 * MINUTE_MS)


class FakeStore:
    def __init__(self, due: Due) -> None:
        self._due = due
        self.condition = StoreCondition(hears_signals=False, feed_delay_s=7.5)

    async def count_events(self) -> dict[tuple[EventType, Phase], int]:
        return {(EventType.REBOOT, Phase.STARTED): 3}

    async def due(self, limit: int) -> Due:
        return self._due


async def rendered(metrics: Metrics, due: Due | None = None, lag_s: float | None = None) -> str:
    found = due or Due(now_ms=T0, scope_ids=(), next_deadline_ms=None)
    engine = cast(Engine, SimpleNamespace(views_lag_s=lag_s))
    return (await metrics.render(cast(Store, FakeStore(found)), engine, 9, can_write=True)).decode()


def committed(*transitions: Transition) -> Receipt:
    event = replace(REBOOT, created_ms=T0, not_before_ms=NOT_BEFORE)
    scope = replace(web(), events={event.id: event})
    return Receipt(scope=scope, at_ms=T0, transitions=transitions)


async def test_the_condition_of_the_store_is_shown() -> None:
    text = await rendered(Metrics(dict))
    assert value(text, "fairwarning_store_signals_up") == 0
    assert value(text, "fairwarning_change_feed_held_back_seconds") == 7.5


@pytest.mark.parametrize(("late_ms", "count"), [(0, 0), (MINUTE_MS, 1)])
async def test_late_starts_are_counted(late_ms: int, count: int) -> None:
    metrics, cause = Metrics(dict), StartCause.DUE
    at = later(NOT_BEFORE, late_ms)
    started = Started(event_id=REBOOT.id, cause=cause, at_ms=at, late_ms=late_ms)
    metrics.note_commit(committed(started), 0.1)
    text = await rendered(metrics)
    found = 'fairwarning_late_starts_total{type="Reboot"} 1.0' in text
    assert found == bool(count)
    given_s = (15 * MINUTE_MS + late_ms) / 1000
    labels = f'cause="{cause.value}",type="Reboot"'
    assert value(text, f"fairwarning_notice_seconds_sum{{{labels}}}") == given_s
    assert value(text, 'fairwarning_transitions_total{kind="Started"}') == 1


async def test_an_approval_is_measured_from_the_announcement() -> None:
    metrics = Metrics(lambda: {"": 7}, lambda: 2)
    approved = Approved(event_id=REBOOT.id, by=ME, at_ms=later(T0, MINUTE_MS))
    metrics.note_commit(committed(approved), 0.1)
    text = await rendered(metrics)
    assert value(text, 'fairwarning_approval_seconds_sum{type="Reboot"}') == 60
    assert value(text, "fairwarning_metadata_answers_total") == 7
    assert value(text, "fairwarning_store_step_backs_total") == 2
    assert abs(value(text, "fairwarning_start_time_seconds") - time.time()) < HANG_S


@pytest.mark.parametrize(
    ("overdue", "next_ms", "deadline_ms"),
    [(2, None, T0), (2, later(T0, HOUR_MS), T0), (0, later(T0, HOUR_MS), later(T0, HOUR_MS))],
)
async def test_time_matters_now_while_something_is_overdue(
    overdue: int, next_ms: Instant | None, deadline_ms: Instant
) -> None:
    scopes = tuple(ScopeId(f"s{n}") for n in range(overdue))
    due = Due(now_ms=T0, scope_ids=scopes, next_deadline_ms=next_ms)
    text = await rendered(Metrics(dict), due, lag_s=4.5)
    assert value(text, "fairwarning_next_deadline_timestamp_seconds") == deadline_ms / 1000
    assert value(text, "fairwarning_overdue_scopes") == overdue
    assert value(text, "fairwarning_documents_age_seconds") == 4.5
    assert value(text, 'fairwarning_events{phase="started",type="Reboot"}') == 3
    assert value(text, 'fairwarning_events{phase="failed",type="Freeze"}') == 0
