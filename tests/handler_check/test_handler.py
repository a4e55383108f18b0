"""A handler runs as a process of its own, and nothing of it is left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairwarning.handler_check.handler import (
    OUTPUT_LINES_MAX,
    CannotStart,
    Handler,
    last_lines,
    scheduling_delay_s,
)
from tests.support.patience import HANG_S

READY = "import os, signal, sys, time; "


def run(code: str, output: Path, **environment: str) -> Handler:
    return Handler([sys.executable, "-c", READY + code], environment, output, lambda: None)


def ended(handler: Handler) -> str:
    handler._process.wait(HANG_S)
    return handler.ending


def test_no_proxy_of_the_check_is_the_handlers_in_whatever_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTPS_PROXY", "All_Proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    output = tmp_path / "output"
    code = "print(sorted(n for n in os.environ if n.lower().endswith('proxy')))"
    ended(run(code, output, HTTP_PROXY="its own"))
    assert last_lines(output) == "['HTTP_PROXY']"


def test_a_killed_handler_has_no_time_to_tidy_up(tmp_path: Path) -> None:
    """As in a power failure; one that is stopped has."""
    said = {}
    code = (
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(print('tidied up')));"
        "open(os.environ['READY'], 'w').close(); time.sleep(3600)"
    )
    for deed in ("kill", "stop"):
        output, ready = tmp_path / deed, tmp_path / f"{deed}-ready"
        os.mkfifo(ready)
        handler = run(code, output, READY=str(ready))
        assert ready.read_text() == "", "it is read to its end when the handler is ready"
        getattr(handler, deed)()
        assert not handler.is_alive
        said[deed] = (last_lines(output), handler.ending)
    assert said["kill"] == ("", f"was ended by {signal.SIGKILL.name}")
    assert said["stop"] == ("tidied up", "ended with exit code 0")


def test_the_end_of_the_output_is_kept_with_what_is_no_text(tmp_path: Path) -> None:
    output = tmp_path / "output"
    code = "sys.stdout.buffer.write(b'\\xff' + b'x\\n' * 30 + b'last'); sys.exit(3)"
    assert ended(run(code, output)) == "ended with exit code 3"
    lines = last_lines(output).splitlines()
    assert (len(lines), lines[-1]) == (OUTPUT_LINES_MAX, "last")
    assert last_lines(tmp_path / "none") == ""


def test_a_command_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="no-such-program: No such file"):
        Handler(["no-such-program"], {}, tmp_path / "output", lambda: None)


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
