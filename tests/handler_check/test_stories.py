"""Every story finds the fault that it is for, and the good example has none."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairwarning.handler_check.cases import STORIES
from fairwarning.handler_check.model import Point, Report, Result, Verdict
from fairwarning.handler_check.run import Wish, check
from tests.handler_check.by_polls import verdicts
from tests.support.patience import HANG_S

ROOT = Path(__file__).parents[2]
VARIANTS = Path(__file__).with_name("variants.py")
PANEL = {
    "neighbour", "scale-set-name", "days-ahead", "second-event", "completed",
    "incarnation-reset", "re-approval", "iso-dates", "dotnet-dates", "empty-body",
    "unknown-version",
}  # fmt: skip
"""What each variant is played, beside the stories that it should fail in."""
FAULTS = {
    "ignores_resources": {"neighbour", "similar-name"},
    "compares_hostname": {"scale-set-name", "terminate", "re-approval"},
    "expects_one_resource": {"multi-vm", "multi-vm-second"},
    "stops_after_first": {"second-event", "started-first", "mixed-versions"},
    "reads_first_event": {"days-ahead", "two-at-once", "re-approval"},
    "approves_far_ahead": {"days-ahead"},
    "approves_in_a_loop": {"re-approval"},
    "believes_in_approvals": {"approval-refused"},
    "never_undoes": {"completed", "cancelled", "own-reboot"},
    "skips_lower_incarnations": {"incarnation-reset"},
    "parses_whatever_comes": {"empty-body"},
    "reads_one_date_form": {"iso-dates", "dotnet-dates"},
    "reads_two_date_forms": {"dotnet-dates"},
    "insists_on_newest_version": {"unknown-version"},
    "uses_proxy": {"proxy"},
}


def play(variant: str, stories: Sequence[str], **more: object) -> Report:
    """With real processes."""
    wish = {
        "command": (sys.executable, str(VARIANTS), variant),
        "stories": tuple(each for each in STORIES if each in stories),
        # Nothing that the good handler does is waited for as long as that.
        "patience_s": HANG_S,
        "jobs": 4,
        "approves": True,
        "namespace": None,
        **more,
    }
    return check(Wish(**wish), lambda _: None)  # type: ignore[arg-type]


def test_the_pages_say_how_many_stories_there_are_and_name_each() -> None:
    pages = ("README.md", "docs/check.md", "docs/test-your-handler.md", "CHANGELOG.md")
    for each in pages:
        assert f"{len(STORIES)} stories" in (ROOT / each).read_text(), each
    table = (ROOT / "docs/check.md").read_text().partition("## The stories")[2]
    assert {*re.findall(r"`([a-z-]+)`", table.partition("\n[")[0])} == {*STORIES}


def test_there_are_enough_stories_and_each_says_why() -> None:
    assert len(STORIES) >= 16
    assert all(each.title and each.why for each in STORIES.values())


def test_the_good_example_comes_through_every_story() -> None:
    report = play("none", [*STORIES])
    bad = [each for each in report.results if each.verdict is not Verdict.PASSED]
    assert not bad
    assert [each.story for each in report.results] == [*STORIES]


@pytest.mark.parametrize("variant", FAULTS)
def test_a_fault_fails_the_stories_that_are_about_it_and_no_other(
    tmp_path: Path, variant: str
) -> None:
    found = verdicts(variant, {*PANEL, *FAULTS[variant]}, tmp_path)
    assert {name for name, each in found.items() if each is Verdict.FAILED} == FAULTS[variant]
    assert Verdict.NOT_OBSERVED not in found.values()


@pytest.mark.parametrize(
    ("variant", "story"), [("compares_hostname", "own-event"), ("approves_behind_a_proxy", "proxy")]
)
def test_a_process_has_the_host_name_and_the_environment_of_its_story(
    variant: str, story: str
) -> None:
    (result,) = play(variant, [story]).results
    assert result.verdict is Verdict.PASSED


def test_a_base_url_does_where_there_is_no_namespace() -> None:
    stories = ["own-event", "neighbour", "scale-set-name"]
    report = play("none", stories, namespace=False)
    assert {each.story: each.verdict for each in report.results} == dict.fromkeys(
        stories, Verdict.PASSED
    )
    assert report.network == "by its base URL"


def test_what_only_a_log_could_show_is_not_observed_without_one(tmp_path: Path) -> None:
    assert verdicts("keeps_no_log", ["completed", "own-event"], tmp_path) == {
        "completed": Verdict.NOT_OBSERVED,
        "own-event": Verdict.PASSED,
    }


def test_what_was_not_observed_is_no_failure() -> None:
    unseen = Point(should="undo", did="nobody knows", verdict=Verdict.NOT_OBSERVED)
    result = Result(story="completed", title="", why="", points=(unseen,))
    report = Report(command=("x",), at="", network="", took_s=0, results=(result,))
    assert report.is_good


def test_who_never_approves_is_judged_by_its_log(tmp_path: Path) -> None:
    stories = ["own-event", "neighbour"]
    by_log = verdicts("never_approves", stories, tmp_path / "log", approves=False)
    assert by_log == dict.fromkeys(stories, Verdict.PASSED)
    by_approvals = verdicts("never_approves", ["own-event"], tmp_path / "approvals")
    assert by_approvals == {"own-event": Verdict.FAILED}
