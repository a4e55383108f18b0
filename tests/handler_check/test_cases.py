"""Every case finds the fault that it is for, and the good example has none."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairwarning.handler_check.all_cases import CASES
from fairwarning.handler_check.model import Point, Report, Result, Verdict
from fairwarning.handler_check.run import CheckOptions, check
from tests.handler_check.by_polls import PausingServer, verdicts
from tests.handler_check.expected_failures import FAULTS, PANEL, VARIANTS
from tests.support.patience import HANG_S

ROOT = Path(__file__).parents[2]


def play(variant: str, cases: Sequence[str], **more: object) -> Report:
    """With real processes."""
    options = {
        "command": (sys.executable, str(VARIANTS), variant),
        "cases": tuple(each for each in CASES if each in cases),
        # Nothing that the good handler does is waited for as long as that.
        "patience_s": HANG_S,
        "jobs": 4,
        "approves": True,
        "namespace": None,
        **more,
    }
    return check(CheckOptions(**options), lambda _: None)  # type: ignore[arg-type]


def test_the_pages_say_how_many_cases_there_are_and_name_each() -> None:
    pages = ("README.md", "docs/check.md", "docs/test-your-handler.md", "CHANGELOG.md")
    for each in pages:
        assert f"{len(CASES)} cases" in (ROOT / each).read_text(), each
    table = (ROOT / "docs/check.md").read_text().partition("## The cases")[2]
    assert {*re.findall(r"`([a-z0-9-]+)`", table.partition("\n[")[0])} == {*CASES}


def test_there_are_enough_cases_and_each_says_why() -> None:
    assert len(CASES) >= 16
    assert all(each.title and each.why for each in CASES.values())


def test_the_good_example_comes_through_every_case() -> None:
    report = play("none", [*CASES])
    bad = [each for each in report.results if each.verdict is not Verdict.PASSED]
    assert not bad
    assert [each.case for each in report.results] == [*CASES]


def test_each_case_has_a_handler_that_must_fail_it() -> None:
    assert {each for cases in FAULTS.values() for each in cases} == {*CASES}


@pytest.mark.parametrize("case", CASES)
def test_the_good_handler_passes_by_polls(tmp_path: Path, case: str) -> None:
    assert verdicts("none", [case], tmp_path) == {case: Verdict.PASSED}


@pytest.mark.parametrize("vm", ["workers_1", "aks-pool-1-vmss_24", "db"])
def test_the_good_handler_passes_as_any_instance(tmp_path: Path, vm: str) -> None:
    cases = {"own-event", "neighbour", "similar-name", "multi-vm-second", "terminate",
             "re-approval", "fewer-resources", "mixed-versions", "tenth-document",
             "overlapping"}  # fmt: skip
    assert verdicts("none", cases, tmp_path, vm=vm) == dict.fromkeys(cases, Verdict.PASSED)


def test_who_asks_with_the_preview_first_is_answered(tmp_path: Path) -> None:
    cases = ["own-event", "unknown-version", "unknown-version-404", "drained-stale"]
    found = verdicts("asks_with_the_preview_first", cases, tmp_path)
    assert found == dict.fromkeys(cases, Verdict.PASSED)


def test_a_handler_that_is_faster_than_the_case_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It acts on the end of a fault before the case goes on."""
    right = PausingServer.clear_faults

    def clear_faults(server: PausingServer, id: str | None = None) -> None:
        right(server, id)
        polls = len(server.requests(kind="events"))
        server.wait_until(lambda: len(server.requests(kind="events")) > polls + 1, timeout=HANG_S)

    monkeypatch.setattr(PausingServer, "clear_faults", clear_faults)
    cases = ["killed-drained", "cancelled", "drained-empty"]
    assert verdicts("none", cases, tmp_path) == dict.fromkeys(cases, Verdict.PASSED)


def test_who_leaves_shared_events_to_their_time_passes(tmp_path: Path) -> None:
    cases = ["multi-vm", "multi-vm-second"]
    found = verdicts("leaves_shared_events_alone", cases, tmp_path)
    assert found == dict.fromkeys(cases, Verdict.PASSED)


@pytest.mark.parametrize("variant", FAULTS)
def test_a_fault_fails_the_cases_that_are_about_it_and_no_other(
    tmp_path: Path, variant: str
) -> None:
    found = verdicts(variant, {*PANEL, *FAULTS[variant]}, tmp_path)
    assert {name for name, each in found.items() if each is Verdict.FAILED} == FAULTS[variant]
    assert Verdict.NOT_OBSERVED not in found.values()


@pytest.mark.parametrize(
    ("variant", "case"), [("compares_hostname", "own-event"), ("approves_behind_a_proxy", "proxy")]
)
def test_a_process_has_the_host_name_and_the_environment_of_its_case(
    variant: str, case: str
) -> None:
    (result,) = play(variant, [case]).results
    assert result.verdict is Verdict.PASSED


def test_a_base_url_does_where_there_is_no_namespace() -> None:
    cases = ["own-event", "neighbour", "scale-set-name"]
    report = play("none", cases, namespace=False)
    assert {each.case: each.verdict for each in report.results} == dict.fromkeys(
        cases, Verdict.PASSED
    )
    assert report.network == "by its base URL"


def test_what_only_a_log_could_show_is_not_observed_without_one(tmp_path: Path) -> None:
    assert verdicts("keeps_no_log", ["completed", "own-event"], tmp_path) == {
        "completed": Verdict.NOT_OBSERVED,
        "own-event": Verdict.PASSED,
    }


def test_what_was_not_observed_is_no_failure() -> None:
    unseen = Point(should="undo", did="nobody knows", verdict=Verdict.NOT_OBSERVED)
    result = Result(case="completed", title="", why="", points=(unseen,))
    report = Report(command=("x",), at="", network="", took_s=0, results=(result,))
    assert report.is_good


def test_who_never_approves_is_judged_by_its_log(tmp_path: Path) -> None:
    cases = ["own-event", "neighbour"]
    by_log = verdicts("never_approves", cases, tmp_path / "log", approves=False)
    assert by_log == dict.fromkeys(cases, Verdict.PASSED)
    by_approvals = verdicts("never_approves", ["own-event"], tmp_path / "approvals")
    assert by_approvals == {"own-event": Verdict.FAILED}
