"""The grade of a handler in one line."""

from xml.etree import ElementTree as Xml

import pytest

from fairwarning import __version__
from fairwarning.handler_check.all_cases import CASES
from fairwarning.handler_check.grade import badge_json, badge_svg, grade
from fairwarning.handler_check.model import Point, Report, Result, Verdict


def report(verdicts: dict[str, Verdict]) -> Report:
    results = tuple(
        Result(case=name, title="", why="", points=(Point(should="", did="", verdict=verdict),))
        for name, verdict in verdicts.items()
    )
    return Report(command=("x",), at="", network="", took_s=0, results=results)


def test_all_passed_is_green() -> None:
    found = grade(report(dict.fromkeys(CASES, Verdict.PASSED)))
    text = f"{len(CASES)} of {len(CASES)} with Fairwarning {__version__}"
    assert found.text == text
    badge = badge_json(found)
    assert (badge["schemaVersion"], badge["message"]) == (1, text)
    assert badge["color"] == "brightgreen"


@pytest.mark.parametrize(
    ("verdict", "colour"), [(Verdict.FAILED, "red"), (Verdict.NOT_OBSERVED, "yellow")]
)
def test_what_was_not_passed_does_not_count(verdict: Verdict, colour: str) -> None:
    found = grade(report({**dict.fromkeys(CASES, Verdict.PASSED), "neighbour": verdict}))
    assert found.passed == len(CASES) - 1
    assert badge_json(found)["color"] == colour


def test_cases_that_were_not_run_are_not_passed() -> None:
    found = grade(report({"own-event": Verdict.PASSED}))
    assert (found.passed, found.not_run, found.cases) == (1, len(CASES) - 1, len(CASES))
    assert badge_json(found)["color"] == "yellow"


def test_the_image_is_xml_with_the_same_words() -> None:
    found = grade(report({"own-event": Verdict.PASSED}))
    image = Xml.fromstring(badge_svg(found))
    assert found.text in "".join(image.itertext())
