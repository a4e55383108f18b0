"""The agent against a real server: each history from the announcement to the end."""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fairwarning.agent.actions import processes
from fairwarning.agent.actions.base import ActionFailed, Context
from fairwarning.agent.config.model import Action, Approve, Config, Hold, Phase, Rule, Shared, When
from fairwarning.agent.records import ActionState, Approval, Memory, Progress, Record
from fairwarning.agent.state_file import StateFile, read_state
from fairwarning.client import AsyncScheduledEvents
from fairwarning.client.changes import Seen
from fairwarning.client.model import Document
from fairwarning.client.polling import Request
from fairwarning.testing import Server
from tests.agent.rig import Rig
from tests.agent.values import action, config

DRAIN = Rule(
    name="drain",
    scheduled=(action("a"), action("b")),
    started=(action("s"),),
    finished=(action("f", has_undo=False),),
    cancelled=(action("c", has_undo=False),),
)


def with_policy(**more: object) -> Config:
    return config(replace(DRAIN, approve=Approve(**more)))  # type: ignore[arg-type]


@pytest.fixture
async def rig(fairwarning: Server, tmp_path: Path) -> Rig:
    return Rig(fairwarning, "web-0", config(DRAIN), tmp_path)


def only(rig: Rig) -> Record:
    (record,) = rig.runner.memory.records.values()
    return record


async def test_a_reboot_from_its_announcement_to_its_end_and_then_another(
    fairwarning: Server, rig: Rig
) -> None:
    await rig.start()
    for _ in range(2):
        rig.world.history.clear()
        planned = fairwarning.schedule("Reboot", "web-0")
        await rig.until(lambda: "s" in rig.world.done)
        assert rig.world.done == {"a", "b", "s"} | (rig.world.done & {"f"})
        assert [each.by for each in fairwarning.approvals() if each.event == planned.id] == [
            "instance:web-0"
        ]
        await rig.advance(minutes=5)
        await rig.until_calm()
        assert rig.world.history == ["a", "b", "s", "uns", "unb", "una", "f"]
    await rig.stop()


async def test_a_failed_drain_is_not_approved_and_is_undone(fairwarning: Server, rig: Rig) -> None:
    rig.world.failing = {"b"}
    await rig.start()
    planned = fairwarning.schedule("Reboot", "web-0")
    await rig.until(lambda: "b" in rig.world.history)
    await rig.advance(minutes=15)
    await rig.until(lambda: "s" in rig.world.history)
    assert fairwarning.event(planned.id).approvals == []
    await rig.advance(minutes=5)
    await rig.until_calm()
    assert rig.world.history == ["a", "b", "s", "uns", "unb", "una", "f"]
    await rig.stop()


async def test_what_is_not_done_in_time_is_cut_off(fairwarning: Server, rig: Rig) -> None:
    rig.world.hanging = {"a"}
    await rig.start()
    planned = fairwarning.schedule("Reboot", "web-0")
    await rig.until(lambda: rig.world.history == ["a"])
    await rig.advance(minutes=4)
    assert not rig.runner.is_idle, "its own timeout is not over yet"
    await rig.advance(minutes=2)
    await rig.until(lambda: "scheduled/1" in only(rig).action_states)
    record = only(rig)
    assert record.action_states["scheduled/0"].why == "not done within 300 s"
    assert record.action_states["scheduled/1"].why == "an action before it failed"
    assert fairwarning.event(planned.id).phase == "scheduled"
    await rig.kill()


async def test_the_deadline_comes_before_the_timeout(fairwarning: Server, tmp_path: Path) -> None:
    slow = replace(DRAIN, scheduled=(action("a", timeout_s=3600), action("b")))
    rig = Rig(fairwarning, "web-0", config(slow), tmp_path)
    rig.world.hanging = {"a"}
    await rig.start()
    fairwarning.schedule("Preempt", "web-0")
    await rig.until(lambda: rig.world.history == ["a"])
    await rig.advance(seconds=24)
    await rig.until(lambda: "scheduled/1" in only(rig).action_states)
    record = only(rig)
    assert record.action_states["scheduled/0"].why == "cut off: no time is left before the event"
    await rig.advance(minutes=5)
    await rig.until_calm()
    assert rig.world.done <= {"f"}
    await rig.stop()


async def test_an_event_that_is_cancelled_while_it_is_drained_for(
    fairwarning: Server, rig: Rig
) -> None:
    rig.world.hanging = {"b"}
    await rig.start()
    planned = fairwarning.schedule("Reboot", "web-0")
    await rig.until(lambda: "b" in rig.world.history)
    fairwarning.cancel(planned)
    await rig.until_calm()
    assert rig.world.history == ["a", "b", "unb", "una", "c"]
    await rig.stop()


async def test_an_event_that_has_already_happened(fairwarning: Server, rig: Rig) -> None:
    await rig.start()
    fairwarning.schedule("Reboot", "web-0", already_happened=True)
    await rig.until(lambda: "s" in rig.world.history)
    await rig.advance(minutes=5)
    await rig.until_calm()
    assert rig.world.history == ["s", "uns", "f"]
    await rig.stop()


async def test_a_neighbours_event_is_not_ours(fairwarning: Server, rig: Rig) -> None:
    await rig.start()
    planned = fairwarning.schedule("Reboot", "web-1")
    await rig.until(lambda: rig.runner.memory.records)
    await rig.advance(minutes=14)
    assert rig.world.history == []
    assert fairwarning.event(planned.id).approvals == []
    await rig.stop()


async def test_the_agents_own_reboot(fairwarning: Server, rig: Rig) -> None:
    """It is gone when its VM goes down, and undoes what it did when it is back."""
    await rig.start()
    fairwarning.schedule("Reboot", "web-0")
    await rig.until(lambda: "s" in rig.world.done)
    await rig.kill()
    fairwarning.advance(minutes=5)
    assert rig.world.done == {"a", "b", "s"}
    await rig.start()
    await rig.until_calm()
    assert rig.world.done == {"f"}
    await rig.stop()


async def test_a_stop_leaves_drained_what_is_drained(fairwarning: Server, rig: Rig) -> None:
    rig.config = with_policy(when=When.NEVER)
    await rig.start()
    fairwarning.schedule("Reboot", "web-0")
    await rig.until(lambda: "b" in rig.world.done)
    await rig.stop()
    assert rig.world.done == {"a", "b"}
    await rig.start()
    await rig.advance(minutes=20)
    await rig.until_calm()
    assert rig.world.done == {"f"}
    await rig.stop()


async def test_killed_after_any_write_it_comes_to_the_same_end(
    fairwarning: Server, tmp_path: Path
) -> None:
    for dies_after in range(1, 40):
        rig = Rig(fairwarning, "web-0", config(DRAIN), tmp_path)
        rig.dies_after = dies_after
        await rig.start()
        fairwarning.schedule("Reboot", "web-0")
        was_killed = await _through(fairwarning, rig)
        assert rig.world.done == {"f"}, f"killed after write {dies_after}"
        assert list(dict.fromkeys(rig.world.history)) == ["a", "b", "s", "uns", "unb", "una", "f"]
        if not was_killed:
            assert dies_after > 10
            return
    raise AssertionError("a history has fewer writes than that")


async def _through(fairwarning: Server, rig: Rig) -> bool:
    """Starts the agent again when it dies; says whether it did."""
    was_killed = False

    async def reach(goal: Callable[[], bool]) -> None:
        nonlocal was_killed
        while await rig.until(lambda: rig.is_dead or goal()) and rig.is_dead:
            was_killed = True
            await rig.kill()
            await rig.start()

    await reach(lambda: "s" in rig.world.done)
    fairwarning.advance(minutes=5)
    await reach(lambda: "f" in rig.world.done and not rig.runner.memory.records)
    await rig.stop()
    return was_killed


async def test_an_approval_that_failed_is_sent_again(fairwarning: Server, rig: Rig) -> None:
    await rig.start()
    fairwarning.fault("status", "web-0", on="approve", count=2)
    planned = fairwarning.schedule("Reboot", "web-0")
    failures = rig.runner._executor._failures
    await rig.until(lambda: failures.get(planned.id) == 1)
    await rig.advance(seconds=5)
    await rig.until(lambda: failures.get(planned.id) == 2)
    await rig.advance(seconds=5)
    await rig.until(lambda: "s" in rig.world.history)
    assert len(fairwarning.event(planned.id).approvals) == 1
    await rig.kill()


async def test_lead_time_and_hold(fairwarning: Server, tmp_path: Path) -> None:
    open_ = tmp_path / "open"
    hold = Hold(command=("test", "-e", str(open_)), every_s=10)
    rig = Rig(fairwarning, "web-0", with_policy(lead_s=300, hold=hold), tmp_path)
    await rig.start()
    planned = fairwarning.schedule("Reboot", "web-0")
    await rig.until(lambda: "b" in rig.world.done)
    await rig.advance(minutes=9)
    assert planned.id not in rig.runner._executor.holds, "not asked before the lead time"
    await rig.advance(minutes=1)
    await rig.until(lambda: planned.id in rig.runner._executor.holds)
    assert fairwarning.event(planned.id).approvals == []
    open_.write_text("")
    await rig.advance(seconds=10)
    await rig.until(lambda: "s" in rig.world.history)
    assert len(fairwarning.event(planned.id).approvals) == 1
    await rig.kill()


async def test_a_hold_command_that_hangs_delays_nothing_once_the_event_has_started(
    fairwarning: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does its end, which it may refuse for a while."""
    monkeypatch.setattr(processes, "GRACE_S", 600.0)
    asked = tmp_path / "asked"
    text = f"trap '' TERM; echo $$ > {asked}.new; mv {asked}.new {asked}; sleep 600"
    hold = Hold(command=("/bin/sh", "-c", text), is_shell=True)
    rig = Rig(fairwarning, "web-0", with_policy(hold=hold), tmp_path)
    await rig.start()
    planned = fairwarning.schedule("Reboot", "web-0")
    await rig.until(asked.exists)
    try:
        fairwarning.approve(planned.id)
        await rig.until(lambda: "s" in rig.world.history)
        await rig.advance(minutes=5)
        await rig.until_calm()
    finally:
        os.killpg(int(asked.read_text()), signal.SIGKILL)
    assert rig.world.history == ["a", "b", "s", "uns", "unb", "una", "f"]
    await rig.stop()


SHARED = {"availability_set": [{"name": "web", "update_domains": 1, "instances": [
    {"name": "web-0", "addresses": ["127.0.1.10"]}, {"name": "web-1", "addresses": ["127.0.1.11"]},
]}]}  # fmt: skip


@pytest.mark.parametrize("part", ["approve", "instance"])
@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_an_approval_or_report_that_hangs_delays_nothing_once_the_event_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, is_cancelled: bool
) -> None:
    """The service takes the request and does not answer; reports count as `instance` there."""
    defaults = Request.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "timeout_s", 600.0)
    with Server(fleet=SHARED) as server:
        shared = Shared.LEADER if part == "approve" else Shared.ALL
        rig = Rig(server, "web-0", with_policy(shared=shared), tmp_path)
        await rig.start()
        server.fault("slow", "web-0", on=part, delay=120)
        planned = server.schedule("Reboot", "web-0", "web-1")
        await server.until(lambda: any(each.fault for each in server.requests("web-0")))
        assert rig.world.history == ["a", "b"]
        if is_cancelled:
            server.cancel(planned.id)
            await rig.until_calm()
            assert rig.world.history == ["a", "b", "unb", "una", "c" if part == "instance" else "f"]
        else:
            server.approve(planned.id)
            await rig.until(lambda: "s" in rig.world.done)
            await rig.advance(minutes=5)
            await rig.until_calm()
            assert rig.world.history == ["a", "b", "s", "uns", "unb", "una", "f"]
        assert server.approvals() == [] or not is_cancelled
        await rig.stop()


@pytest.mark.parametrize("fails", [False, True])
async def test_all_of_a_shared_event_are_waited_for(tmp_path: Path, fails: bool) -> None:
    with Server(fleet=SHARED) as server:
        rigs = [Rig(server, name, config(DRAIN), tmp_path) for name in ("web-0", "web-1")]
        rigs[1].world.hanging = {"b"}
        for rig in rigs:
            await rig.start()
        planned = server.schedule("Reboot", "web-0", "web-1")
        one, other = rigs
        await one.until(lambda: one.runner.is_drained(planned.id))
        await other.until(lambda: "b" in other.world.history)
        assert server.event(planned.id).phase == "scheduled", "web-1 is not ready"
        await other.kill()
        other.world.hanging = set()
        other.world.failing = {"b"} if fails else set()
        await other.start()
        await other.until(lambda: other.world.history.count("b") == 2)
        if fails:
            await one.advance(seconds=4)
            await one.until(lambda: one.runner.is_idle)
            assert server.event(planned.id).approvals == []
        else:
            await other.until(lambda: "s" in other.world.done)
            assert server.event(planned.id).phase == "started"
        for rig in rigs:
            await rig.kill()


async def test_only_the_leader_approves_if_it_was_said_so(tmp_path: Path) -> None:
    with Server(fleet=SHARED) as server:
        leads = with_policy(shared=Shared.LEADER)
        rigs = [Rig(server, name, leads, tmp_path) for name in ("web-0", "web-1")]
        await rigs[1].start()
        planned = server.schedule("Reboot", "web-0", "web-1")
        await rigs[1].until(lambda: "b" in rigs[1].world.done and rigs[1].runner.is_idle)
        assert server.event(planned.id).phase == "scheduled"
        await rigs[0].start()
        await rigs[0].until(lambda: "s" in rigs[0].world.done)
        assert [each.by for each in server.approvals()] == ["instance:web-0"]
        for rig in rigs:
            await rig.kill()


@pytest.mark.parametrize("kind", ["status", "empty", "reset", "incarnation-reset", "duplicate"])
async def test_a_service_that_misbehaves_makes_no_difference(
    fairwarning: Server, rig: Rig, kind: str
) -> None:
    await rig.start()
    fairwarning.fault(kind, "web-0", count=2)
    fairwarning.schedule("Reboot", "web-0")
    await rig.until(lambda: "s" in rig.world.done)
    fairwarning.fault(kind, "web-0", count=2)
    fairwarning.advance(minutes=5)
    await rig.until_calm()
    assert rig.world.history == ["a", "b", "s", "uns", "unb", "una", "f"]
    await rig.stop()


async def test_a_disk_that_is_full_does_not_stop_a_drain(
    fairwarning: Server, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    await rig.start()
    monkeypatch.setattr("os.fsync", full)
    fairwarning.schedule("Reboot", "web-0")
    await rig.until(lambda: "s" in rig.world.done)
    assert "cannot be written" in rig.metrics.not_ready
    monkeypatch.undo()
    await rig.advance(minutes=5)
    await rig.until_calm()
    assert rig.metrics.not_ready == ""
    await rig.stop()


async def test_what_could_not_be_written_is_written_when_the_disk_has_room_again(
    fairwarning: Server, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next start would undo once more, long after."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    await rig.start()
    fairwarning.schedule("Reboot", "web-0")
    await rig.until(lambda: "s" in rig.world.done)
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        await rig.advance(minutes=5)
        await rig.until_calm()
        assert read_state(rig.path).records
    await rig.service.get()
    await rig.until(lambda: rig.metrics.is_state_written)
    assert read_state(rig.path) == rig.runner.memory
    await rig.stop()


async def test_a_restart_while_it_approves_approves_again(fairwarning: Server, rig: Rig) -> None:
    rig.config = with_policy(lead_s=60)
    await rig.start()
    planned = fairwarning.schedule("Reboot", "web-0")
    await rig.until(lambda: "b" in rig.world.done and rig.runner.is_idle)
    await rig.kill()
    record = rig.runner.memory.records[planned.id]
    begun = rig.runner.memory.with_record(replace(record, approval=Approval.BEGUN))
    rig.state.open()
    rig.state.save(begun)
    rig.state.close()
    fairwarning.advance(minutes=14)
    await rig.start()
    await rig.until(lambda: "s" in rig.world.done)
    assert len(fairwarning.event(planned.id).approvals) == 1
    await rig.kill()


async def test_an_event_that_is_back_when_it_has_been_undone_is_prepared_for_again(
    fairwarning: Server, rig: Rig
) -> None:
    """Old documents can make it look over for a while; then it is in the next ones again."""
    planned = fairwarning.schedule("Reboot", "web-0")
    document = await document_of(rig)
    shown = Seen(incarnation=document.incarnation, events={planned.id: document.events[0]})
    over = Record(event=document.events[0], rule=DRAIN, phase=Phase.CANCELLED, is_mine=True)
    state = StateFile(rig.path)
    state.open()
    state.save(Memory(seen=shown, records={planned.id: over}))
    state.close()
    await rig.start()
    await rig.until(lambda: {"c", "a", "b"} <= rig.world.done)
    assert rig.world.history[:3] == ["c", "a", "b"]
    await rig.stop()


async def document_of(rig: Rig) -> Document:
    async with AsyncScheduledEvents(rig.server.vm(rig.name).url) as events:
        return await events.get()


def failed(rig: Rig) -> ActionState | None:
    records = rig.runner.memory.records.values()
    states = [each for record in records for each in record.action_states.values()]
    return next((each for each in states if each.progress is Progress.FAILED), None)


async def test_an_action_with_a_bug_fails_and_the_agent_goes_on(
    fairwarning: Server, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(action: Action, context: Context) -> None:
        raise ZeroDivisionError

    await rig.start()
    with monkeypatch.context() as patched:
        patched.setattr(rig.world, "do", broken)
        fairwarning.schedule("Reboot", "web-0")
        state = await rig.until(lambda: failed(rig))
    assert state is not None
    assert state.why == "it broke; the log says where"
    assert fairwarning.approvals() == []
    await rig.advance(minutes=20)
    await rig.advance(minutes=5)
    await rig.until_calm()
    assert "f" in rig.world.history
    await rig.stop()


async def test_what_an_action_keeps_is_on_disk_before_it_goes_on(
    fairwarning: Server, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_disk: list[dict[str, dict[str, str]]] = []

    async def keeps(action: Action, context: Context) -> None:
        context.keep("was", "up")
        on_disk.append({**read_state(rig.path).kept})  # type: ignore[dict-item]
        raise ActionFailed("no")

    monkeypatch.setattr(rig.world, "do", keeps)
    await rig.start()
    fairwarning.schedule("Reboot", "web-0")
    (kept,) = (await rig.until(lambda: on_disk))[0].values()
    assert kept == {"was": "up"}
    await rig.stop()
