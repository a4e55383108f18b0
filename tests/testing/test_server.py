"""The server in a test's own process: what a test can do with it, and what it says when wrong."""

import asyncio
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fairwarning.metadata.settings import EndpointRules
from fairwarning.testing import NotAnswered, Server, Vm, server
from fairwarning.testing.server_loop import START, ServerLoop
from fairwarning.testing.server_thread import Changes

FLEET = """
[[vm]]
name = "solo"
"""


def test_a_notice_of_a_quarter_of_an_hour_passes_at_once(fairwarning: Server) -> None:
    vm = fairwarning.vm("web-0")
    assert vm.document()["Events"] == []
    event = fairwarning.schedule("reboot", "web-0", description="host update")
    shown = vm.document()["Events"][0]
    assert (shown["EventId"], shown["EventStatus"]) == (event.id, "Scheduled")
    assert shown["NotBefore"] == "Thu, 01 Jan 2026 00:15:00 GMT"
    fairwarning.advance(minutes=14, seconds=59)
    assert fairwarning.event(event).phase == "scheduled"
    fairwarning.advance(seconds=1)
    assert vm.document()["Events"][0]["EventStatus"] == "Started"
    fairwarning.advance("1h")
    assert vm.document()["Events"] == []
    assert [each.phase for each in fairwarning.events(all=True)] == ["completed"]
    assert fairwarning.events() == []


def test_who_approved_is_told(fairwarning: Server) -> None:
    vm = fairwarning.vm("web-0")
    vm.document()
    event = fairwarning.schedule("Reboot", "web-0")
    vm.approve(event.id)
    assert [(each.event, each.by) for each in fairwarning.approvals()] == [
        (event.id, "instance:web-0")
    ]
    assert fairwarning.event(event).phase == "started"
    asked = fairwarning.requests("web-0", kind="approve")
    assert [each.version for each in asked] == ["2020-07-01"]
    assert event.id.encode() in asked[0].body


def test_an_event_is_among_those_that_are_not_over_until_its_end(fairwarning: Server) -> None:
    event = fairwarning.schedule("Reboot", "web-0", duration="5m")
    assert event.duration_seconds == 300
    assert fairwarning.approve(event.id.lower()).phase == "started"
    assert [each.id for each in fairwarning.events()] == [event.id]
    fairwarning.advance("1h")
    assert fairwarning.events() == []
    later = fairwarning.schedule("Freeze", "db")
    assert [each.id for each in fairwarning.events(all=True)] == [event.id, later.id]


def test_operations_of_owners(fairwarning: Server) -> None:
    fairwarning.vm("workers_0").document()
    fairwarning.vm("web-0").document()
    assert fairwarning.restart("web-0").type == "Reboot"
    assert fairwarning.redeploy("web-1").type == "Redeploy"
    assert fairwarning.delete("workers_0").type == "Terminate"


def test_equal_seeds_give_equal_ids_and_times() -> None:
    def told(seed: int) -> list[tuple[str, str]]:
        with server(seed=seed) as fw:
            fw.vm("web-0").document()
            fw.schedule("Reboot", "web-0")
            fw.schedule("Freeze", "web-1")
            return [(each.id, each.not_before) for each in fw.events()]

    assert told(7) == told(7)
    assert told(7) != told(8)


def test_equal_seeds_give_equal_chances() -> None:
    def struck(seed: int) -> list[bool]:
        with server(seed=seed) as fw:
            fw.fault("empty", "web-0", probability=0.5)
            vm = fw.vm("web-0")
            for _ in range(20):
                urllib.request.urlopen(
                    urllib.request.Request(
                        f"{vm.events_url}?api-version=2020-07-01", headers={"Metadata": "true"}
                    )
                ).close()
            return [each.fault is not None for each in fw.requests()]

    assert struck(1) == struck(1)
    assert 0 < sum(struck(1)) < 20


def test_it_begins_when_it_is_told_to() -> None:
    start = datetime(2030, 5, 1, 12, tzinfo=UTC)
    with server(start=start) as fw:
        assert fw.now == start
        fw.advance(timedelta(days=2))
        assert fw.now == start + timedelta(days=2)


def test_a_fleet_may_be_text_a_file_or_a_mapping_and_is_a_test_fleet(tmp_path: Path) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text(FLEET)
    for fleet in (FLEET, path, str(path), {"vm": [{"name": "solo"}]}):
        with server(fleet=fleet) as fw:
            fw.vm("solo").document()
            assert fw.schedule("Preempt", "solo", notice="1s").resources == ["solo"]


@pytest.mark.parametrize(
    "fleet", ["test = false\n" + FLEET, {"test": False, "vm": [{"name": "solo"}]}]
)
def test_a_real_fleet_stays_one_and_says_that_faults_do_not_strike_there(
    fleet: str | dict[str, Any],
) -> None:
    with (
        server(fleet=fleet) as fw,
        pytest.raises(ValueError, match="test = true"),
    ):
        fw.fault("empty", "solo")


def test_faults_end_with_their_block_and_with_their_count(fairwarning: Server) -> None:
    vm = fairwarning.vm("web-0")
    with fairwarning.fault("status", "web-0", status=500) as fault:
        assert fault.kind == "status"
        with pytest.raises(NotAnswered, match="500"):
            vm.document()
        assert fairwarning.vm("web-1").document()["Events"] == []
    assert vm.document()["Events"] == []
    fairwarning.fault("status", status=429, count=1)
    with pytest.raises(NotAnswered) as refusal:
        vm.document()
    assert refusal.value.status == 429
    assert vm.document()["Events"] == []


def test_the_end_of_a_block_clears_its_own_fault_alone(fairwarning: Server) -> None:
    vm = fairwarning.vm("web-0")
    fairwarning.fault("status", "web-0", status=429)
    with fairwarning.fault("status", "web-1"):
        pass
    assert fairwarning.vm("web-1").document()["Events"] == []
    with pytest.raises(NotAnswered, match="429"):
        vm.document()


def test_a_fault_may_last_for_a_while_of_the_servers_time(fairwarning: Server) -> None:
    vm = fairwarning.vm("web-0")
    fairwarning.fault("status", "web-0", lasting="10m")
    fairwarning.advance(minutes=9)
    with pytest.raises(NotAnswered):
        vm.document()
    fairwarning.advance(minutes=1)
    assert vm.document()["Events"] == []


def test_an_endpoint_that_lags_behind_does_not_know_younger_versions() -> None:
    with server(newest_version="2019-08-01") as fw:
        vm = fw.vm("web-0")
        with pytest.raises(NotAnswered, match="2019-08-01") as refusal:
            vm.document()
        assert refusal.value.status == 400
        assert "2020-07-01" not in refusal.value.body
        assert vm.document("2019-08-01")["Events"] == []


def test_without_long_polls_an_unchanged_document_is_told_at_once() -> None:
    with server(holds_polls=False) as fw:
        vm = fw.vm("web-0")
        vm.document()
        request = urllib.request.Request(
            f"{vm.events_url}?api-version=2020-07-01&wait=300",
            headers={"Metadata": "true", "If-None-Match": "*"},
        )
        with pytest.raises(urllib.error.HTTPError) as answer:
            urllib.request.urlopen(request, timeout=299)
        answer.value.close()
        assert answer.value.code == 304


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda fw: fw.schedule("Explode", "web-0"), "Freeze, Reboot, Redeploy, Preempt"),
        (lambda fw: fw.schedule("Power", "web-0"), "'Power' is no type of event"),
        (lambda fw: fw.schedule("Reboot", "nobody"), "web-0, web-1, web-2"),
        (lambda fw: fw.schedule("Reboot"), "say which instances"),
        (lambda fw: fw.vm("nobody"), "web-0, web-1, web-2"),
        (lambda fw: fw.restart("nobody"), "web-0, web-1, web-2"),
        (lambda fw: fw.fault("meteor"), "empty, reset, slow"),
        (lambda fw: fw.fault("empty", "nobody"), "web-0, web-1, web-2"),
        (lambda fw: fw.fault("empty", on="tuesdays"), "poll, approve"),
        (lambda fw: fw.advance("soon"), "like '15m'"),
        (lambda fw: fw.advance(-1), "forward"),
    ],
)  # fmt: skip
def test_a_wrong_word_is_answered_with_the_right_ones(
    fairwarning: Server, wrong: object, hint: str
) -> None:
    assert callable(wrong)
    with pytest.raises((ValueError, LookupError), match=hint):
        wrong(fairwarning)


def test_waiting_in_vain_says_for_what_and_what_happened_instead(fairwarning: Server) -> None:
    fairwarning.vm("web-0").document()
    fairwarning.schedule("Reboot", "web-0")
    with pytest.raises(AssertionError) as failure:
        fairwarning.wait_until(lambda fw: fw.approvals(), timeout=0.05)
    message = str(failure.value)
    assert "fw.approvals()" in message
    assert "0.05 s" in message
    assert "web-0 asked for events" in message
    assert "Reboot" in message


def test_a_handler_in_a_thread(fairwarning: Server) -> None:
    vm, stop = fairwarning.vm("web-0"), threading.Event()

    def handle() -> None:
        while not stop.wait(0.01):
            for event in vm.document()["Events"]:
                vm.approve(event["EventId"])

    thread = threading.Thread(target=handle)
    thread.start()
    try:
        event = fairwarning.schedule("Reboot", "web-0")
        found = fairwarning.wait_until(fairwarning.approvals)
        assert found[0].event == event.id
    finally:
        stop.set()
        thread.join()


def test_a_handler_in_a_process_of_its_own(fairwarning: Server) -> None:
    code = """
import os
from fairwarning.client import ScheduledEvents
with ScheduledEvents() as events:
    for change in events.watch():
        if change.kind == "scheduled":
            events.approve(change.event.id)
"""
    handler = subprocess.Popen(
        [sys.executable, "-c", code],
        env={"FAIRWARNING_METADATA_URL": fairwarning.vm("web-0").url},
    )
    try:
        fairwarning.wait_until(lambda fw: fw.requests("web-0"))
        event = fairwarning.schedule("Reboot", "web-0")
        fairwarning.wait_until(lambda fw: fw.event(event).phase == "started")
        assert fairwarning.requests("web-0")[0].user_agent == "fairwarning"
    finally:
        handler.kill()
        handler.wait()


async def test_a_handler_in_the_event_loop_of_the_test(fairwarning: Server) -> None:
    import asyncio

    from fairwarning.client import AsyncScheduledEvents

    async def handle() -> None:
        async with AsyncScheduledEvents(fairwarning.vm("web-0").url) as events:
            async for change in events.watch():
                await events.approve(change.event.id)

    task = asyncio.create_task(handle())
    await fairwarning.until(lambda: fairwarning.requests("web-0"))
    event = fairwarning.schedule("Reboot", "web-0")
    await fairwarning.until(lambda fw: fw.event(event).phase == "started")
    task.cancel()


async def test_a_coroutine_that_holds_up_its_own_handler_is_told_so(fairwarning: Server) -> None:
    with pytest.raises(AssertionError, match=r"await fairwarning\.until"):
        fairwarning.wait_until(lambda: False, timeout=0.01)


def test_what_another_thread_announces_wakes_whoever_waits_for_it(fairwarning: Server) -> None:
    is_waited_for = threading.Event()

    def announce() -> None:
        is_waited_for.wait()
        fairwarning.schedule("Reboot", "web-0")

    def condition(server: Server) -> bool:
        found = bool(server.events())
        is_waited_for.set()
        return found

    thread = threading.Thread(target=announce)
    thread.start()
    assert fairwarning.wait_until(condition)
    thread.join()


def test_a_condition_that_is_written_in_c_is_asked_without_the_server(fairwarning: Server) -> None:
    assert list(fairwarning.wait_until({"web-0": 1}.items)) == [("web-0", 1)]


def looks_twice(running: Server) -> Callable[[], bool]:
    """A condition that is true the second time, because of what happened during the first."""
    looks = iter([False, True])

    def look() -> bool:
        running.nudge()
        return next(looks)

    return look


async def test_what_happens_while_the_condition_is_asked_is_not_missed(
    fairwarning: Server,
) -> None:
    assert fairwarning.wait_until(looks_twice(fairwarning), timeout=0)
    assert await fairwarning.until(looks_twice(fairwarning), timeout=0)


async def test_whoever_begins_to_wait_too_late_does_not_wait() -> None:
    changes = Changes()
    changes.note()
    assert await changes.until_beyond(0, timeout_s=0)
    assert not await changes.until_beyond(1, timeout_s=0)


async def test_a_request_can_be_seen_by_whoever_it_wakes() -> None:
    seen: list[int] = []
    stage = ServerLoop(
        fleet=None,
        seed=0,
        start=START,
        metadata=[("127.0.0.1", 0)],
        rules=EndpointRules(),
        on_change=lambda *_: seen.append(len(stage.asked)),
    )
    await stage.start()
    try:
        vm = Vm("web-0", stage.node.metadata_urls[0])
        for _ in range(2):
            await asyncio.to_thread(vm.document)
    finally:
        await stage.stop()
    assert 2 in seen


def test_a_server_that_cannot_start_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    with pytest.raises(Exception, match="vm"):
        Server(fleet={"vm": "no list"})
    assert threading.active_count() == before


def test_what_changes_outside_of_the_server_needs_a_nudge(fairwarning: Server) -> None:
    done: list[int] = []

    def work() -> None:
        done.append(1)
        fairwarning.nudge()

    timer = threading.Timer(0.02, work)
    timer.start()
    assert fairwarning.wait_until(lambda: done) == [1]
    timer.join()


def test_two_servers_know_nothing_of_each_other() -> None:
    with server() as one, server() as other:
        one.vm("web-0").document()
        one.schedule("Reboot", "web-0")
        one.fault("empty")
        assert one.url != other.url
        assert other.events(all=True) == []
        assert other.vm("web-0").document()["Events"] == []
        assert len(other.requests()) == 1


def test_while_it_is_unreachable_connections_are_refused(fairwarning: Server) -> None:
    vm = fairwarning.vm("web-0")
    with fairwarning.unreachable(), pytest.raises(urllib.error.URLError, match="refused"):
        vm.document()
    assert vm.document()["Events"] == []


def test_malformed_requests_are_listed_with_the_answer(fairwarning: Server) -> None:
    url = f"{fairwarning.vm('web-0').events_url}?api-version=2020-07-01"
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(url)
    caught.value.close()
    (refused,) = fairwarning.refused_requests()
    assert (refused.method, refused.status) == ("GET", 400)
    assert refused.target.endswith("/metadata/scheduledevents?api-version=2020-07-01")
    assert "metadata header" in refused.answer


def test_requests_are_timed_by_the_clock_that_is_given() -> None:
    with Server(seconds=lambda: 42.0) as server:
        server.vm("web-0").document()
        assert [each.at_s for each in server.timed_requests("web-0")] == [42.0]
