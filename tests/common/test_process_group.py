"""Whole process groups are ended, whoever their members belong to."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from fairwarning.common import process_group
from fairwarning.common.process_group import end, end_of_others
from tests.support.patience import HANG_S

FIRST_PROCESS = """
import asyncio, ctypes, sys
from fairwarning.common.process_group import end

async def main():
    # As the first process of a container does, we inherit whoever loses his parent.
    assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0
    process = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", "sleep 600 & echo; wait", stdout=-1, start_new_session=True
    )
    await process.stdout.readline()
    await end(process, float(sys.argv[1]))
    print("ended", process.returncode)

asyncio.run(main())
"""


def test_the_first_process_of_a_container_clears_away_what_has_ended() -> None:
    """Else it would wait out the whole grace for a process that is there only by name."""
    command = [sys.executable, "-c", FIRST_PROCESS, str(2 * HANG_S)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert (done.stdout, done.stderr) == ("ended -15\n", "")


async def test_whoever_ends_a_foreign_group_knows_whether_some_of_it_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(["sleep", "600"], start_new_session=True)

    ended, left = await asyncio.to_thread(start), await asyncio.to_thread(start)
    assert await end_of_others(ended.pid, HANG_S)
    ended.wait()
    # Nobody clears it away, so it stays there as far as anybody can tell.
    monkeypatch.setattr(process_group, "_clear_away", lambda _: None)
    monkeypatch.setattr(process_group, "KILLED_S_MAX", 0.1)
    assert not await end_of_others(left.pid, 0.1)
    left.wait()


async def stubborn() -> asyncio.subprocess.Process:
    """A program that ignores SIGTERM, with a child that does too."""
    process = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", "trap '' TERM; sleep 600 & echo; wait",
        stdout=asyncio.subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    await process.stdout.readline()
    return process


async def test_who_does_not_end_when_asked_is_killed_with_all_its_children(
    caplog: pytest.LogCaptureFixture,
) -> None:
    process = await stubborn()
    await end(process, 0.01)
    assert process.returncode == -signal.SIGKILL
    assert "did not end within 0.01 s" in caplog.text
    assert process.stdout is not None
    async with asyncio.timeout(HANG_S):
        assert await process.stdout.read() == b""  # The child has it open too, as long as it lives.


async def test_who_is_cancelled_while_it_waits_leaves_no_process() -> None:
    process = await stubborn()
    ending = asyncio.create_task(end(process, HANG_S))
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert process.returncode == -signal.SIGKILL


def test_a_group_of_another_user_is_there_although_it_may_not_be_signalled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    errors: list[OSError] = [PermissionError(), ProcessLookupError()]

    def refuse(group: int, number: int) -> None:
        raise errors.pop(0)

    monkeypatch.setattr(os, "killpg", refuse)
    assert process_group._signal(1, 0)
    assert not process_group._signal(1, 0)
