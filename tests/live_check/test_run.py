"""The real program under load, on both stores that keep what they are told.

How much happens depends on the machine, so the figures are not demanded; that something
happened, and that no promise was broken, is.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tools.postgres import url_of

LOAD_S = 8
OFTEN = ("--kill-every", "3s", "--lease", "5s", "--json")


@contextmanager
def live_check(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "fairwarning.live_check", *OFTEN, *arguments]
    environment = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def look(process: subprocess.Popen[str]) -> None:
    """Nothing was broken, and each part of it took part."""
    out, _ = process.communicate()
    figures: dict[str, Any] = json.loads(out)
    assert figures["findings"] == []
    assert process.returncode == 0
    for what in ("polls", "documents", "completed", "impacts", "kills"):
        assert figures[what] >= 1, figures
    assert figures["operations"]["schedule"]["done"] >= 1


def test_promises_hold_on_postgres(tmp_path: Path, bare_postgres_dsn: str) -> None:
    store = ("--store", url_of(bare_postgres_dsn), "--nodes", "2")
    with live_check(tmp_path, "--for", f"{LOAD_S}s", *store) as process:
        look(process)


def test_promises_hold_on_sqlite_and_an_interrupt_ends_the_load(tmp_path: Path) -> None:
    with live_check(tmp_path, "--for", "1h") as process:
        while not list(tmp_path.glob("*/round-0001")):
            time.sleep(0.05)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(LOAD_S)
        process.send_signal(signal.SIGINT)
        look(process)
    assert not list(tmp_path.iterdir()), "the records of a good run are removed"
