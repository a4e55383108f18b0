"""The command driver with real programs."""

import asyncio
import json
import os
import tempfile
from pathlib import Path
from typing import IO

import pytest
import uvloop

from fairwarning.core.model import OperationKind
from fairwarning.drivers import command, programs
from fairwarning.drivers.command import CommandDriver
from fairwarning.engine.clocks import SystemClock, VirtualClock
from fairwarning.engine.protocols import DriverFailed, Found, LeaseLost
from tests.core.builders import E1
from tests.drivers.orders import HeldLease, order, program
from tests.support.patience import HANG_S


async def carry_out(
    settings: dict[str, str], attempt: int = 1, operation: OperationKind | None = None
) -> None:
    asked = order(settings, attempt=attempt, operation=operation)
    await CommandDriver(SystemClock()).do(asked, SystemClock().alarm(), HeldLease())


async def test_the_program_gets_the_order_and_its_end_is_the_end_of_the_impact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRWARNING_STORE", "postgresql://me:hunter2@db/fw")
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    monkeypatch.setenv("HYPERVISOR", "qemu:///system")
    settings = program(
        tmp_path,
        "said = {'argv': sys.argv[1:], 'order': json.load(sys.stdin), 'env': dict(os.environ)}\n"
        "notes.write_text(json.dumps(said))\n",
    )
    await carry_out(settings, operation=OperationKind.REIMAGE)
    said = json.loads((tmp_path / "notes").read_text())
    assert said["argv"] == ["do"]
    assert said["order"] == {
        "action": "do",
        "key": E1,
        "attempt": 1,
        "type": "Reboot",
        "operation": "reimage",
        "scope": "s/g/availability-set/web",
        "instances": [
            {
                "name": "web-0",
                "handle": "vm-17",
                "updateDomain": 0,
                "faultDomain": 0,
                "addresses": [],
                "tags": {"a": "b"},
                "priority": "Regular",
                "eviction": "Deallocate",
                "power": "running",
            },
            said["order"]["instances"][1],
        ],
        "durationSeconds": 30,
        "node": "n1",
        "leaseUntil": "2020-09-13T12:27:10.000Z",
        "started": "2020-09-13T12:26:40.000Z",
    }
    ours = {name: value for name, value in said["env"].items() if name.startswith("FAIRWARNING")}
    assert ours == {
        "FAIRWARNING_KEY": E1,
        "FAIRWARNING_ATTEMPT": "1",
        "FAIRWARNING_LEASE_UNTIL": "1600000030",
        "FAIRWARNING_TYPE": "Reboot",
        "FAIRWARNING_OPERATION": "reimage",
        "FAIRWARNING_INSTANCES": "vm-17 web-1",
    }
    assert said["env"]["HYPERVISOR"] == "qemu:///system"


async def test_a_failure_says_the_programs_last_words(tmp_path: Path) -> None:
    settings = program(tmp_path, "sys.exit('trying\\nno such domain\\n\\n')\n")
    with pytest.raises(DriverFailed, match=r"ended with code 1 on do: no such domain$"):
        await carry_out(settings)


async def test_endless_last_words_are_cut(tmp_path: Path) -> None:
    settings = program(tmp_path, "sys.exit('x' * 10_000_000 + 'the end')\n")
    with pytest.raises(DriverFailed, match=r"xthe end$") as failed:
        await carry_out(settings)
    assert len(str(failed.value)) < 5_000


async def test_a_program_that_was_killed_says_by_what(tmp_path: Path) -> None:
    settings = program(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)\n")
    with pytest.raises(DriverFailed, match=r"was ended by signal 9 on do$"):
        await carry_out(settings)


async def test_a_program_that_is_not_there_is_a_failure_that_says_so() -> None:
    with pytest.raises(DriverFailed, match="cannot run '/nonesuch': No such file"):
        await carry_out({"run": "/nonesuch --hard"})


async def test_a_full_disk_is_a_failure_that_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: int) -> IO[bytes]:
        return open("/dev/full", "r+b", buffering=0)

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/its/folder")
    with pytest.raises(DriverFailed, match="/its/folder: No space left on device; free"):
        await carry_out(program(tmp_path, "notes.touch()\n"))
    assert not (tmp_path / "notes").exists()


async def test_a_program_that_may_not_be_run_is_a_failure_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "reboot"
    path.write_text("#!/bin/sh\n")
    with pytest.raises(DriverFailed, match=r"cannot run '.*/reboot': Permission denied"):
        await carry_out({"run": str(path)})


@pytest.mark.parametrize("settings", [{}, {"run": "'"}, {"run": "true", "timeout": "soon"}])
async def test_settings_that_make_no_sense_are_a_failure(settings: dict[str, str]) -> None:
    with pytest.raises(DriverFailed, match="change the fleet"):
        await carry_out(settings)


async def test_no_shell_reads_the_command_line(tmp_path: Path) -> None:
    settings = program(tmp_path, "notes.write_text(json.dumps(sys.argv[1:]))\n")
    settings["run"] += " '$HOME; rm x' *"
    await carry_out(settings)
    assert json.loads((tmp_path / "notes").read_text()) == ["$HOME; rm x", "*", "do"]


@pytest.mark.parametrize("state", list(Found))
async def test_find_is_what_the_program_prints(tmp_path: Path, state: Found) -> None:
    settings = program(tmp_path, f"print({state.value!r} if action == 'find' else 'wrong')\n")
    assert await CommandDriver(SystemClock()).find(order(settings, attempt=2)) is state


async def test_an_answer_that_find_does_not_know_is_a_failure(tmp_path: Path) -> None:
    settings = program(tmp_path, "print('perhaps')\n")
    with pytest.raises(DriverFailed, match=r"'perhaps'.*unknown, running, done, failed"):
        await CommandDriver(SystemClock()).find(order(settings, attempt=2))


async def test_a_later_attempt_waits_for_what_still_runs_and_does_nothing_twice(
    tmp_path: Path,
) -> None:
    settings = program(
        tmp_path,
        "before = notes.read_text() if notes.exists() else ''\n"
        "notes.write_text(before + action + ' ')\n"
        "print('done' if before.count('find') >= 2 else 'running')\n",
    )
    clock = VirtualClock()
    alarm = clock.alarm()
    work = asyncio.create_task(
        CommandDriver(SystemClock()).do(order(settings, attempt=2), alarm, HeldLease())
    )
    work.add_done_callback(lambda _: alarm.close())
    await clock.advance(10_000)
    await work
    assert (tmp_path / "notes").read_text().split() == ["find", "find", "find"]


async def test_nothing_is_begun_if_the_lease_was_lost_while_it_waited(tmp_path: Path) -> None:
    settings = program(
        tmp_path,
        "notes.write_text((notes.read_text() if notes.exists() else '') + action + ' ')\n"
        "print('unknown')\n",
    )
    lease = HeldLease()
    lease.is_held = False
    with pytest.raises(LeaseLost):
        await CommandDriver(SystemClock()).do(
            order(settings, attempt=2), SystemClock().alarm(), lease
        )
    assert (tmp_path / "notes").read_text().split() == ["find"]


async def test_what_was_never_begun_is_begun_by_a_later_attempt(tmp_path: Path) -> None:
    settings = program(
        tmp_path,
        "if action == 'find': print('unknown')\n"
        "else: notes.write_text(os.environ['FAIRWARNING_ATTEMPT'])\n",
    )
    await carry_out(settings, attempt=3)
    assert (tmp_path / "notes").read_text() == "3"


LASTING = (
    "pipe = os.open(notes, os.O_WRONLY)\n"
    "wait = [sys.executable, '-S', '-c', 'import time; time.sleep(600)']\n"
    "child = subprocess.Popen(wait, pass_fds=[pipe])\n"
    "if 'stubborn' in sys.argv: signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "os.write(pipe, b'%d\\n' % os.getpid())\n"
    "time.sleep(600)\n"
)
"""Runs on with a child; both hold the pipe open for as long as they live."""


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "notes")
    return tmp_path / "notes"


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "GRACE_S", 0.2)


@pytest.mark.usefixtures("short_grace")
@pytest.mark.parametrize("manner", ["", " stubborn"])
async def test_cancelling_ends_the_program_and_its_children(pipe: Path, manner: str) -> None:
    settings = program(pipe.parent, LASTING)
    settings["run"] += manner
    work = asyncio.create_task(carry_out(settings))
    with await asyncio.to_thread(open, pipe, "rb") as held:
        assert await asyncio.to_thread(held.readline)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert await asyncio.to_thread(held.read) == b""


async def test_cancelling_twice_kills_the_program_and_waits_for_its_end(pipe: Path) -> None:
    """The server may end while a program that was cancelled takes its time."""
    settings = program(pipe.parent, LASTING)
    settings["run"] += " stubborn"
    work = asyncio.create_task(carry_out(settings))
    with await asyncio.to_thread(open, pipe, "rb") as held:
        pid = int(await asyncio.to_thread(held.readline))
        work.cancel()
        await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.usefixtures("short_grace")
async def test_a_program_that_takes_too_long_is_ended(pipe: Path) -> None:
    settings = program(pipe.parent, LASTING) | {"timeout": "1s"}
    # Without waiting for the program: on a busy machine it may be ended before it has begun.
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as held:
        with pytest.raises(DriverFailed, match="did not end within 1 s"):
            await carry_out(settings)
        os.set_blocking(held.fileno(), True)
        assert (await asyncio.to_thread(held.readlines))[1:] == []


@pytest.mark.usefixtures("short_grace")
async def test_a_question_that_takes_too_long_is_ended(
    pipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "FIND_TIMEOUT_S", 0.5)
    settings = program(pipe.parent, LASTING)
    with (
        os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb"),
        pytest.raises(DriverFailed, match=r"did not end within 0\.5 s"),
    ):
        async with asyncio.timeout(HANG_S):
            await CommandDriver(SystemClock()).find(order(settings, attempt=2))


CLEANING_UP = (
    "def end(*_):\n"
    "    time.sleep(0.3)\n"
    "    os.write(pipe, b'cleaned up\\n')\n"
    "    os._exit(0)\n"
    "pipe = os.open(notes, os.O_WRONLY)\n"
    "if os.fork():\n"
    "    time.sleep(600)\n"
    "signal.signal(signal.SIGTERM, end)\n"
    "os.write(pipe, b'ready\\n')\n"
    "time.sleep(600)\n"
)
"""Ends at once when it is asked to, but its child takes a little longer."""


async def test_what_a_program_has_started_may_clean_up(
    pipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "GRACE_S", HANG_S)
    work = asyncio.create_task(carry_out(program(pipe.parent, CLEANING_UP)))
    with await asyncio.to_thread(open, pipe, "rb") as held:
        assert await asyncio.to_thread(held.readline) == b"ready\n"
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert await asyncio.to_thread(held.read) == b"cleaned up\n"


async def test_what_a_program_leaves_in_the_background_does_not_hold_the_driver(
    tmp_path: Path,
) -> None:
    settings = program(
        tmp_path,
        "child = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)'])\n"
        "notes.write_text(str(child.pid))\n",
    )
    await carry_out(settings)
    os.kill(int((tmp_path / "notes").read_text()), 9)


def test_it_works_on_the_event_loop_of_the_server(tmp_path: Path) -> None:
    settings = program(tmp_path, "sys.exit('seen ' + json.load(sys.stdin)['key'])\n")
    with pytest.raises(DriverFailed, match=f"seen {E1}"):
        uvloop.run(carry_out(settings))
