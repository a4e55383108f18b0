"""Runs the Python samples, unchanged, in both VMs through the shim `python2.py`.

All of them compare the host's name with the names in the document, which in 2017-03-01 begin
with an underscore. Two ways are printed: as part of the first name, which finds it, and as
one of the names, which never does. (It is well that it does not: the line behind it uses a
name that the sample never sets.)
"""

import json
import sys
from pathlib import Path

from tests.support.vms import Vm
from tools.seeds.one_request import resource_name
from tools.seeds.sample_run import Answer, SampleRun, expect
from tools.seeds.samples import Sample
from tools.seeds.server import DB, WEB

_SHIM = Path(__file__).with_name("python2.py")
_FINDS_PART = b"in evt['Resources'][0]"


def play_python(run: SampleRun, sample: Sample) -> str:
    run.activate(sample.endpoint)
    run.server.schedule(WEB)
    (answer, printed) = _run(run, run.web, sample)
    expect(len(answer.events) == 1, f"{WEB} got {answer.body}")
    (event,) = answer.events
    expect(event["Resources"] == [resource_name(sample)], f"{WEB} got {answer.body}")
    if _FINDS_PART in sample.source:
        said = f"Reboot not before {event['NotBefore'].replace(' ', '_')}"
        expect(said in printed, f"printed {printed!r}")
        outcome = f"prints {printed.splitlines()[0]!r}"
    else:
        expect(printed == "", f"printed {printed!r}")
        outcome = f"compares {WEB!r} with {resource_name(sample)!r} and prints nothing"
    (elsewhere, silence) = _run(run, run.db, sample)
    expect((elsewhere.events, silence) == ([], ""), f"{DB} got {elsewhere.body}")
    return f"exit 0; {WEB} sees the Reboot and {outcome}; {DB} sees none"


def _run(run: SampleRun, vm: Vm, sample: Sample) -> tuple[Answer, str]:
    """Returns the one answer that the sample got, and what it printed."""
    file, trace = run.folder / f"{vm.name}.py", run.folder / f"{vm.name}.trace"
    file.write_bytes(sample.source)
    command = [sys.executable, str(_SHIM), str(file), str(trace)]
    done = vm.run(command, cwd=run.folder, env=run.environment)
    expect(done.returncode == 0, f"exit {done.returncode}: {done.stderr}")
    expect(file.read_bytes() == sample.source, "the file changed")
    (note,) = trace.read_text().splitlines()
    status, body = json.loads(note)
    return Answer(str(status), body), done.stdout
