"""Plays samples of one request: curl lines, addresses, bodies and documents."""

import json
import re

from tools.seeds.sample_run import Answer, SampleRun, expect
from tools.seeds.samples import Sample
from tools.seeds.server import DB, WEB

_GUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PLACEHOLDER = "{EventId}"


def play_curl(run: SampleRun, sample: Sample) -> str:
    line = sample.source.decode()
    if "-X POST" in line:
        return _approve_as_printed(run, sample, line)
    return f"GET as printed: {_query(run, sample, line)}"


def play_endpoint(run: SampleRun, sample: Sample) -> str:
    line = f"curl -H Metadata:true '{sample.source.decode()}'"
    return f"GET of the address as printed: {_query(run, sample, line)}"


def play_body(run: SampleRun, sample: Sample) -> str:
    """Sends the body; the placeholder is a JSON value, so the id for it is in quotes."""
    run.activate(sample.endpoint)
    event_id = run.server.schedule(WEB)
    body = sample.source.decode().replace(_PLACEHOLDER, f'"{event_id}"')
    (run.folder / "body.json").write_text(body)
    line = f"curl -H Metadata:true -d @body.json '{sample.endpoint}'"
    return f'POST of the body, "{event_id}" for {_PLACEHOLDER}: {_approve(run, line, event_id)}'


def play_document(run: SampleRun, sample: Sample) -> str:
    """Checks that the answer has the property names of the page, no more and no fewer."""
    run.activate(sample.endpoint)
    run.server.schedule(WEB)
    answer = run.shell(run.web, f"curl -H Metadata:true '{sample.endpoint}'")
    printed = set(re.findall(r'"(\w+)"\s*:', sample.source.decode()))
    served = {*json.loads(answer.body), *answer.events[0]}
    expect(printed == served, f"printed {sorted(printed)}, served {sorted(served)}")
    return f"the answer has just the {len(printed)} properties that are printed"


def resource_name(sample: Sample) -> str:
    """Returns the name in the document; 2017-03-01 puts an underscore in front."""
    return f"_{WEB}" if sample.endpoint.endswith("2017-03-01") else WEB


def _query(run: SampleRun, sample: Sample, line: str) -> str:
    for vm in (run.web, run.db):
        _expect_seen(vm.name, run.shell(vm, line), [])
    event_id = run.server.schedule(WEB)
    seen = [(event_id.upper(), "Reboot", "Scheduled", [resource_name(sample)])]
    _expect_seen(WEB, run.shell(run.web, line), seen)
    _expect_seen(DB, run.shell(run.db, line), [])
    return f"200, {WEB} sees the Reboot of {resource_name(sample)}, {DB} sees none"


def _expect_seen(
    name: str, answer: Answer, expected: list[tuple[str, str, str, list[str]]]
) -> None:
    found = [
        (each["EventId"], each["EventType"], each["EventStatus"], each["Resources"])
        for each in answer.events
    ]
    expect(found == expected, f"{name} got {answer.body}")


def _approve_as_printed(run: SampleRun, sample: Sample, line: str) -> str:
    run.activate(sample.endpoint)
    found = _GUID.search(line)
    assert found is not None, line
    printed = found[0]
    event_id = run.server.schedule(WEB, printed)
    how = "as printed"
    if event_id.lower() != printed:
        how = f"with {event_id} for {printed}"
        line = line.replace(printed, event_id)
    return f"POST {how}: {_approve(run, line, event_id)}"


def _approve(run: SampleRun, line: str, event_id: str) -> str:
    for _ in range(2):
        answer = run.shell(run.web, line)
        expect(answer == Answer("200", ""), f"{answer.status} {answer.body!r}")
    phase = run.server.wait_until_started(event_id)
    expect(phase != "scheduled", "200, but the event did not start")
    return f"200 and no body, also when repeated; the event is {phase}"
