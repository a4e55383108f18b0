"""What an agent has running is written down, and only that is ended by the next one."""

import asyncio
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairwarning.agent.actions import processes
from fairwarning.agent.leftover_processes import Group, RunningGroups, identify, take_over

STUBBORN = "trap '' TERM; (trap '' TERM; sleep 60) & echo $! >&2; echo; wait"


async def start(text: str) -> asyncio.subprocess.Process:
    """Once it has said a line."""
    process = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        text,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    await process.stdout.readline()
    return process


async def test_what_does_not_end_when_asked_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "GRACE_S", 0.1)
    process = await start(STUBBORN)
    assert process.stderr is not None
    child = int(await process.stderr.readline())
    (tmp_path / "s.json.running").write_text(f"{identify(process.pid)}\n")
    await take_over(tmp_path / "s.json")
    assert identify(process.pid) is identify(child) is None
    assert not os.listdir(tmp_path)
    await process.wait()


async def test_a_group_that_we_are_of_ourselves_is_left_alone(tmp_path: Path) -> None:
    """A command may have put this agent in the place of the last one."""
    state = tmp_path / "s.json"
    text = (
        "import asyncio, os, pathlib\n"
        "from fairwarning.agent.leftover_processes import identify, take_over\n"
        f"state = pathlib.Path({str(state)!r})\n"
        "pathlib.Path(f'{state}.running').write_text(f'{identify(os.getpgrp())}\\n')\n"
        "asyncio.run(take_over(state))\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", text, start_new_session=True
    )
    assert await process.wait() == 0


async def test_a_process_that_only_has_the_same_number_is_left_alone(tmp_path: Path) -> None:
    process = await start("echo; exec sleep 60")
    found = identify(process.pid)
    assert found is not None
    later = Group(leader=found.leader, started=found.started + 1, boot=found.boot)
    rebooted = Group(leader=found.leader, started=found.started, boot="another")
    damaged = f"{found.leader} {found.started}\n\0\0\n-1 x y\n{'9' * 5000} 1 y\n"
    (tmp_path / "s.json.running").write_text(f"{later}\n{rebooted}\n{damaged}")
    await take_over(tmp_path / "s.json")
    assert identify(process.pid) == found
    process.kill()
    await process.wait()


async def test_it_is_written_down_while_it_runs_and_no_longer(tmp_path: Path) -> None:
    await take_over(tmp_path / "s.json")
    noted = tmp_path / "s.json.running"
    until_there = f"until [ -e {noted} ]; do :; done; cat {noted}; echo $$"
    finished = await processes.run(["/bin/sh", "-c", until_there], environment={})
    line, leader = finished.output.splitlines()
    assert line.split()[0] == leader
    assert not noted.exists()


async def test_cut_off_while_it_starts_it_is_written_down_until_it_has_ended() -> None:
    seen: list[Group | None] = []

    @contextmanager
    def noted(leader: int) -> Iterator[None]:
        seen.append(identify(leader))
        yield
        seen.append(identify(leader))

    processes.noted.set(noted)
    running = asyncio.create_task(processes.run(["sleep", "60"], environment={}))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [each is None for each in seen] == [False, True]


def test_work_goes_on_also_where_it_cannot_be_written_down_and_that_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running = RunningGroups(tmp_path / "nowhere" / "s.json.running")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            with running.noted(os.getpid()):
                pass
    assert [each.message for each in caplog.records] == [
        f"{tmp_path}/nowhere/s.json.running cannot be written: No such file or directory; "
        "if this agent is killed, its commands may go on"
    ]
