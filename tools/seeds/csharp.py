"""Compiles the C# samples with Mono and four more `using` lines, and runs their loop twice.

A loop's turn is: get the document, wait for Enter, approve what is in it, wait for Enter. The
second turn sees the event Started, with an empty NotBefore, and approves it again.
"""

import glob
import queue
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes import running
from tools.seeds.packages import NEWTONSOFT
from tools.seeds.sample_run import Failed, NotRunnable, SampleRun, expect
from tools.seeds.samples import Sample
from tools.seeds.server import WEB

_USING = b"""using System;
using System.Collections.Generic;
using System.Net;
using Newtonsoft.Json;
"""
_ERROR = re.compile(r"error CS\d+: .*")
_LINE_S_MAX = 30
_SHOWN_LINES_MAX = 2
_END = ""


def play_csharp(run: SampleRun, sample: Sample) -> str:
    program = _compiled(run.folder, sample.source)
    run.activate(sample.endpoint)
    event_id = run.server.schedule(WEB)
    with _talking(run, program) as dialogue:
        dialogue.hear("Press Enter")
        dialogue.press_enter()
        approval = dialogue.hear("Approving events with json")
        expect(event_id.upper() in approval, approval)
        dialogue.hear("Complete")
        phase = run.server.wait_until_started(event_id)
        expect(phase != "scheduled", f"it said {approval!r}, but the event did not start")
        dialogue.press_enter()
        dialogue.hear("Press Enter")
        dialogue.press_enter()
        dialogue.hear("Complete")
    return f"compiles with Mono; get, handle, approve, twice; the event is {phase}"


def _compiled(folder: Path, source: bytes) -> Path:
    file, program = folder / "sample.cs", folder / "sample.exe"
    file.write_bytes(_USING + source)
    (library, *_) = glob.glob(NEWTONSOFT)
    done = subprocess.run(  # noqa: S603
        ["mcs", "-nologo", f"-out:{program}", f"-reference:{library}", str(file)],  # noqa: S607
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    if done.returncode != 0:
        error = _ERROR.search(done.stderr + done.stdout)
        raise NotRunnable(f"does not compile as printed: {error[0] if error else done.stderr}")
    return program


@contextmanager
def _talking(run: SampleRun, program: Path) -> Iterator["_Dialogue"]:
    with running(
        run.web.command(["mono", str(program)]),
        cwd=run.folder,
        env=run.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        yield _Dialogue(process)


class _Dialogue:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._unasked: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def hear(self, words: str) -> str:
        """Returns the next line with these words in it."""
        while True:
            try:
                line = self._lines.get(timeout=_LINE_S_MAX)
            except queue.Empty:
                raise self._failed(words) from None
            if words in line:
                return line
            if line == _END:
                raise self._failed(words)
            self._unasked.append(line.strip())

    def press_enter(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(_END)

    def _failed(self, words: str) -> Failed:
        said = " / ".join([line for line in self._unasked if line][:_SHOWN_LINES_MAX])
        return Failed(f"never said {words!r}; it said {said!r}")
