"""How long the processes of a handler waited for a core."""

import subprocess
import sys

from fairwarning.handler_check.scheduling_delay import scheduling_delay_s


def test_the_delays_of_a_group_are_added_to_our_own() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, process_group=0
    ) as process:
        nobody = scheduling_delay_s(2**22)
        with_it = scheduling_delay_s(process.pid)
        process.communicate(b"\n")
    assert 0 <= nobody <= with_it
    assert process.returncode == 0


def test_a_group_that_has_ended_has_no_delay_of_its_own() -> None:
    done = subprocess.Popen([sys.executable, "-c", ""], process_group=0)
    done.wait()
    assert scheduling_delay_s(done.pid) >= 0
