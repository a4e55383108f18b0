"""Whole process groups are ended, whoever their members belong to."""

import asyncio
import subprocess
import sys

import pytest

from fairwarning.common import process_group
from fairwarning.common.process_group import end_of_others
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
