"""Long-running operations: as long as their events, and with their ends."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fairwarning.azure_api.errors import Failure
from fairwarning.azure_api.operations import (
    Operation,
    first_id_at,
    new_operation_id,
    state_of,
    status_json,
)
from fairwarning.core.instants import DAY_MS, HOUR_MS, Instant, later
from fairwarning.core.model import Event, EventType, Phase, Source
from fairwarning.engine.clocks import SystemClock, VirtualClock
from fairwarning.operator_api.expired_records import delete_old_operations
from tests.azure_api.arm_client import COMPUTE, ArmClient, S, asking
from tests.core.builders import E1, E2, T0, names

OPERATION = Operation(id="op", verb="delete", target="/x", started_ms=T0, events=(E1, E2))
ENDS = (Phase.COMPLETED, Phase.CANCELLED, Phase.FAILED)


def event(phase: Phase, ended_ms: int | None = None, outcome: str = "") -> Event:
    return Event(
        id=E1,
        type=EventType.TERMINATE,
        source=Source.USER,
        phase=phase,
        resources=names("workers_1"),
        update_domain=0,
        created_ms=T0,
        not_before_ms=T0,
        ended_ms=None if ended_ms is None else Instant(ended_ms),
        outcome=outcome,
    )


ENDED = st.builds(event, st.sampled_from(ENDS), st.integers(T0, T0 + DAY_MS), st.just("why"))
PENDING = st.builds(event, st.sampled_from([Phase.SCHEDULED, Phase.STARTED]))


@given(st.lists(ENDED, max_size=4), st.lists(PENDING, min_size=1, max_size=2))
def test_it_goes_on_as_long_as_one_of_its_events_does(
    ended: Sequence[Event], pending: Sequence[Event]
) -> None:
    state = state_of(OPERATION, [*ended, *pending])
    assert (state.status, state.is_over, state.ended_ms) == ("InProgress", False, None)


@given(st.lists(ENDED, min_size=1, max_size=4))
def test_it_ends_with_the_last_and_fails_if_one_did_not_complete(ended: Sequence[Event]) -> None:
    state = state_of(OPERATION, ended)
    broken = [each for each in ended if each.phase is not Phase.COMPLETED]
    assert state.is_over
    assert state.ended_ms == max(each.ended_ms or 0 for each in ended)
    assert state.status == ("Failed" if broken else "Succeeded")
    assert len(state.failure.details if state.failure else ()) == len(broken)


def test_without_events_it_is_over_when_it_begins() -> None:
    state = state_of(replace(OPERATION, events=()), [])
    assert (state.status, state.ended_ms) == ("Succeeded", T0)


def test_what_could_not_begin_has_failed() -> None:
    failure = Failure(code="Bad", message="no")
    state = state_of(replace(OPERATION, events=(), failure=failure), [])
    assert status_json(OPERATION, state)["error"] == {"code": "Bad", "message": "no"}


def test_an_event_whose_instance_went_first_is_no_failure() -> None:
    gone = event(Phase.CANCELLED, T0, "instance workers_1 was deleted")
    assert state_of(OPERATION, [gone]).status == "Succeeded"
    removed = event(Phase.CANCELLED, T0, "instance workers_1 was removed")
    assert state_of(OPERATION, [removed]).status == "Succeeded"
    two = replace(removed, resources=names("workers_1", "workers_2"))
    assert state_of(OPERATION, [two]).status == "Failed"
    assert state_of(OPERATION, [event(Phase.CANCELLED, T0, "by ana")]).status == "Failed"


@given(st.integers(0, 2**47), st.integers(0, 2**47))
def test_ids_sort_by_time(one: int, other: int) -> None:
    ids = first_id_at(Instant(one)), first_id_at(Instant(other))
    assert (ids[0] < ids[1]) == (one < other)


def test_a_new_id_is_a_guid_that_sorts_between_the_instants_around_it() -> None:
    before = SystemClock().now()
    id = new_operation_id()
    after = later(SystemClock().now(), 1)
    assert first_id_at(before) <= id <= first_id_at(after)
    assert [len(part) for part in id.split("-")] == [8, 4, 4, 4, 12]


async def begun(arm: ArmClient, path: str) -> str:
    """The URL to ask how far it is."""
    answer = await arm.answer("POST", path)
    assert answer.status_code == 202, answer.text
    assert answer.headers["Retry-After"] == "1"
    assert answer.headers["Location"] == answer.headers["Azure-AsyncOperation"] + "&monitor=true"
    return str(answer.headers["Azure-AsyncOperation"])


async def test_a_client_can_follow_it_to_its_end_in_both_ways() -> None:
    async with asking() as arm:
        await arm.rig.activate("db")
        url = await begun(arm, f"{COMPUTE}/virtualMachines/db/restart")
        assert url.startswith(f"{arm.rig.node.control_url}{S}/providers/Microsoft.Compute/")
        found = await arm.http.get(url)
        assert (found.json()["status"], found.headers["Retry-After"]) == ("InProgress", "1")
        waiting = await arm.http.get(f"{url}&monitor=true")
        assert (waiting.status_code, waiting.content) == (202, b"")
        assert waiting.headers["Location"].endswith("&monitor=true")
        await arm.rig.clock.advance(HOUR_MS)
        over = (await arm.http.get(url)).json()
        assert over["status"] == "Succeeded"
        assert over["endTime"] > over["startTime"]
        assert (await arm.http.get(f"{url}&monitor=true")).status_code == 200


async def test_an_unknown_one_is_not_found() -> None:
    async with asking() as arm:
        path = f"{S}/providers/Microsoft.Compute/locations/local/operations/{new_operation_id()}"
        assert (await arm.get(path, 404))["code"] == "OperationNotFound"


async def test_after_a_day_it_is_forgotten_unless_it_still_runs() -> None:
    async with asking() as arm:
        await arm.rig.activate("db", "web-0")
        store = arm.rig.node.store
        short = await begun(arm, f"{COMPUTE}/virtualMachines/web-0/restart")
        await arm.rig.clock.advance(HOUR_MS)
        long = await begun(arm, f"{COMPUTE}/virtualMachines/db/restart")

        async def statuses() -> list[int]:
            return [(await arm.http.get(url)).status_code for url in (short, long)]

        wall = VirtualClock(later(SystemClock().now(), DAY_MS - HOUR_MS))
        await delete_old_operations(store, wall)
        assert await statuses() == [200, 200]
        wall = VirtualClock(later(wall.now(), 2 * HOUR_MS))
        await delete_old_operations(store, wall)
        assert await statuses() == [404, 200]
        await arm.rig.clock.advance(HOUR_MS)
        await delete_old_operations(store, wall)
        assert await statuses() == [404, 404]
