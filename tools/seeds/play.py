"""Plays each sample with a server of its own, and prints a line about it."""

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path

from tests.support.vms import Rig
from tools.seeds.csharp import play_csharp
from tools.seeds.one_request import play_body, play_curl, play_document, play_endpoint
from tools.seeds.python_sample import play_python
from tools.seeds.sample_run import Failed, NotRunnable, SampleRun
from tools.seeds.samples import Kind, Sample, samples_of
from tools.seeds.server import sample_server


class Verdict(StrEnum):
    PASS = "pass"  # noqa: S105
    FAIL = "FAIL"
    NOT_RUN = "-"


_PLAYS: Mapping[Kind, Callable[[SampleRun, Sample], str]] = {
    Kind.CURL: play_curl,
    Kind.ENDPOINT: play_endpoint,
    Kind.BODY: play_body,
    Kind.DOCUMENT: play_document,
    Kind.PYTHON: play_python,
    Kind.CSHARP: play_csharp,
}
_MUST_PASS_ONCE = (Kind.CURL, Kind.PYTHON, Kind.CSHARP)


def play_all(rig: Rig, seeds: str, serve: list[str]) -> bool:
    """Returns whether none failed, and some of each kind that matters ran."""
    found = samples_of(Path(seeds))
    verdicts = Counter[Verdict]()
    passed = set[Kind]()
    for sample in found:
        verdict, observed = _play(rig, sample, serve)
        print(f"{verdict:4}  {sample.place:8}  {sample.kind:8}  {observed}", flush=True)
        verdicts[verdict] += 1
        if verdict is Verdict.PASS:
            passed.add(sample.kind)
    print(
        f"{verdicts[Verdict.PASS]} passed, {verdicts[Verdict.FAIL]} failed, "
        f"{verdicts[Verdict.NOT_RUN]} cannot be run"
    )
    absent = [kind for kind in _MUST_PASS_ONCE if kind not in passed]
    if absent:
        print(f"no sample of these kinds passed: {', '.join(absent)}")
    return not absent and not verdicts[Verdict.FAIL]


def _play(rig: Rig, sample: Sample, serve: list[str]) -> tuple[Verdict, str]:
    if sample.kind is Kind.FOREIGN:
        return Verdict.NOT_RUN, sample.obstacle
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            with sample_server(serve) as server:
                return Verdict.PASS, _PLAYS[sample.kind](SampleRun(rig, server, folder), sample)
        except NotRunnable as obstacle:
            return Verdict.NOT_RUN, str(obstacle)
        except (Failed, RuntimeError, OSError, json.JSONDecodeError) as failure:
            return Verdict.FAIL, str(failure)
