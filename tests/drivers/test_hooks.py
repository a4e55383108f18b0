"""Hooks call a real program and a real web service, through the engine too."""

import asyncio
import dataclasses
import json
import shlex
from pathlib import Path

import pytest

from fairwarning.core.commands import Approve, Schedule
from fairwarning.core.hooks import Hook, Hooks, HookStage
from fairwarning.core.instants import SECOND_MS
from fairwarning.core.journal_text import sentence
from fairwarning.core.model import EventType, NodeId, Phase
from fairwarning.core.resources import expand
from fairwarning.core.transitions import HookFinished
from fairwarning.core.webhook_signatures import signature_of
from fairwarning.drivers import programs
from fairwarning.drivers.hooks import HookRunner
from fairwarning.drivers.simulated import SimulatedDriver
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import HookCall, HookResult
from fairwarning.engine.service import Engine
from fairwarning.stores.memory import MemoryStore
from tests.core.builders import E1, names
from tests.drivers.orders import order, program
from tests.drivers.service import service
from tests.engine.harness import ME, TEST_WEB, ids

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def written(folder: Path, text: str) -> tuple[str, ...]:
    """The words of a hook that runs this Python text."""
    return tuple(shlex.split(program(folder, text)["run"]))


async def run(hook: Hook, *, outcome: Phase | None = None, tried: int = 1) -> HookResult:
    stage = HookStage.BEFORE if outcome is None else HookStage.AFTER
    call = HookCall(
        hook=hook, stage=stage, number=1, tried=tried, outcome=outcome, reason="it rained"
    )
    return await HookRunner(VirtualClock())(order({}, attempt=2), call)


async def test_a_program_is_told_of_the_order_and_of_the_hook(tmp_path: Path) -> None:
    words = written(
        tmp_path,
        "told = json.load(sys.stdin)\n"
        "told |= {name: value for name, value in os.environ.items() if 'FAIRWARNING_' in name}\n"
        "told['arguments'] = sys.argv[1:]\n"
        "notes.write_text(json.dumps(told))\n"
        "print('to everybody'); print('to nobody', file=sys.stderr)\n",
    )
    result = await run(Hook(run=(*words, "off", "$HOME")), outcome=Phase.FAILED, tried=3)
    assert result == HookResult(
        is_done=True, result="exit code 0", output="to everybody\nto nobody"
    )
    told = json.loads(await asyncio.to_thread((tmp_path / "notes").read_text))
    assert told["arguments"] == ["off", "$HOME"]
    expected = {
        "action": "after", "hook": 1, "try": 3, "outcome": "failed", "reason": "it rained",
        "key": E1, "attempt": 2, "FAIRWARNING_KEY": E1, "FAIRWARNING_ATTEMPT": "2",
        "FAIRWARNING_HOOK": "after", "FAIRWARNING_HOOK_NUMBER": "1", "FAIRWARNING_TRY": "3",
        "FAIRWARNING_OUTCOME": "failed", "FAIRWARNING_REASON": "it rained",
        "FAIRWARNING_INSTANCES": "vm-17 web-1",
    }  # fmt: skip
    assert {key: told[key] for key in expected} == expected


async def test_a_program_that_fails_is_a_failure_with_its_output(tmp_path: Path) -> None:
    result = await run(Hook(run=written(tmp_path, "sys.exit('no route')\n")))
    assert result == HookResult(is_done=False, result="exit code 1", output="no route")


async def test_a_program_that_a_signal_ends_is_a_failure_that_names_the_signal(
    tmp_path: Path,
) -> None:
    words = written(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)\n")
    result = await run(Hook(run=words))
    assert result == HookResult(is_done=False, result="the program was ended by signal 9")


async def test_a_program_that_is_too_slow_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "GRACE_S", 0.2)
    words = written(tmp_path, "time.sleep(600)\n")
    result = await run(Hook(run=words, timeout_ms=2 * SECOND_MS))
    assert not result.is_done
    assert result.result == "the program did not end within 2 s"


async def test_a_program_that_is_not_there_is_a_failure() -> None:
    result = await run(Hook(run=("/no/such/program", "SECRET")))
    assert result.result == "cannot run '/no/such/program': No such file or directory"


async def test_a_service_gets_a_signed_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    async with service((204, ""), (200, "flushed")) as it:
        hook = Hook(url=it.url, secret_env="HOOK_SECRET")
        first = await run(hook)
        second = await run(hook, tried=2)
    assert first == HookResult(is_done=True, result="answered 204")
    assert second == HookResult(is_done=True, result="answered 200", output="flushed")
    assert [(each["action"], each["try"], each["outcome"]) for each in it.orders] == [
        ("before", 1, None),
        ("before", 2, None),
    ]
    assert len({each["webhook-id"] for each in it.heads}) == 2
    head, body = it.heads[0], it.bodies[0]
    expected = signature_of(SECRET, head["webhook-id"], int(head["webhook-timestamp"]), body)
    assert head["webhook-signature"] == expected


@pytest.mark.parametrize("status", [302, 404, 500])
async def test_another_status_is_a_failure(status: int) -> None:
    async with service((status, "no")) as it:
        result = await run(Hook(url=it.url))
    assert result == HookResult(is_done=False, result=f"answered {status}", output="no")


async def test_a_service_that_cannot_be_called_is_a_failure_without_secrets() -> None:
    async with service() as it:
        silent = await run(Hook(url=it.url, timeout_ms=5 * SECOND_MS))
    unsigned = await run(Hook(url=it.url, secret_env="NO_SUCH_VARIABLE"))
    assert "gave no answer" in silent.result
    assert "NO_SUCH_VARIABLE is not set" in unsigned.result
    assert "hunter2" not in silent.result + unsigned.result


async def test_real_hooks_run_around_a_simulated_impact(tmp_path: Path) -> None:
    words = written(
        tmp_path,
        "is_first = not notes.exists()\n"
        "notes.open('a').write(os.environ['FAIRWARNING_HOOK'] + ' ')\n"
        "print('tried')\n"
        "sys.exit(1 if is_first else 0)\n",
    )
    clock = VirtualClock()
    store = MemoryStore(clock)
    async with service((200, "flushed")) as it:
        hooks = Hooks(
            before=(Hook(name="alarm", run=words, retries=1), Hook(url=it.url)),
            after=(Hook(name="alarm", run=words),),
        )
        place = dataclasses.replace(TEST_WEB.place, hooks=hooks)
        (scope,) = expand(dataclasses.replace(TEST_WEB, place=place))
        await store.create([scope], by=ME)
        engine = Engine(
            store=store,
            clock=clock,
            drivers={"simulated": SimulatedDriver(clock)},
            run_hook=HookRunner(clock),
            node=NodeId("n"),
            ids=ids(),
        )
        await engine.start()
        freeze = Schedule(event_id=E1, type=EventType.FREEZE, targets=names("web-0"), notice_ms=0)
        await engine.submit(scope.id, freeze, by=ME)
        await engine.submit(scope.id, Approve(event_id=E1, by=ME), by=ME)
        await clock.advance(60 * SECOND_MS)
        _, event = await store.find_event(E1)
        await engine.stop()
    assert event.phase is Phase.COMPLETED
    assert await asyncio.to_thread((tmp_path / "notes").read_text) == "before before after "
    told = [each.transition for each in await store.journal(limit=1_000)]
    finished = [sentence(each) for each in told if isinstance(each, HookFinished)]
    assert finished == [
        "hook before 1 (alarm) done on try 2: exit code 0, after 5 s; output: tried",
        "hook before 2 (127.0.0.1) done: answered 200, after 0 s; output: flushed",
        "hook after 1 (alarm) done: exit code 0, after 0 s; output: tried",
    ]
