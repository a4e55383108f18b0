"""The grade of a handler in one line, for its README: as JSON and as a badge.

A case that was not chosen was not passed, so a grade always counts all cases that there are.
"""

from html import escape
from typing import Any

from msgspec import Struct

from fairwarning import __version__
from fairwarning.handler_check.all_cases import CASES
from fairwarning.handler_check.model import Report, Verdict

LABEL = "scheduled events"
_COLOURS = {"brightgreen": "#2f7d32", "yellow": "#8a6d00", "red": "#b3261e"}
_CHAR_PX = 6.6  # An average character of the badge's font.
_PAD_PX = 10


class Grade(Struct, frozen=True, kw_only=True, rename="camel"):
    passed: int
    failed: int
    not_observed: int
    not_run: int
    cases: int
    """How many cases this version of Fairwarning has."""
    fairwarning: str
    """The version of Fairwarning."""
    text: str
    """The grade for people, such as `48 of 48 with Fairwarning 1.0`."""


def grade(report: Report) -> Grade:
    passed = report.count(Verdict.PASSED)
    return Grade(
        passed=passed,
        failed=report.count(Verdict.FAILED),
        not_observed=report.count(Verdict.NOT_OBSERVED),
        not_run=len(CASES) - len(report.results),
        cases=len(CASES),
        fairwarning=__version__,
        text=f"{passed} of {len(CASES)} with Fairwarning {__version__}",
    )


def badge_json(found: Grade) -> dict[str, Any]:
    """Return the JSON that services for badges read from a URL."""
    return {
        "schemaVersion": 1,
        "label": LABEL,
        "message": found.text,
        "color": _colour(found),
    }


def badge_svg(found: Grade) -> str:
    """Return the badge as an SVG image, which needs no service."""
    left, right = (round(len(text) * _CHAR_PX) + 2 * _PAD_PX for text in (LABEL, found.text))
    whole, text = left + right, escape(found.text)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" '
        f'aria-label="{LABEL}: {text}">\n'
        f"<title>{LABEL}: {text}</title>\n"
        f'<rect width="{whole}" height="20" rx="3" fill="#444"/>\n'
        f'<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3H{left}z" '
        f'fill="{_COLOURS[_colour(found)]}"/>\n'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">\n'
        f'<text x="{_PAD_PX}" y="14">{LABEL}</text>\n'
        f'<text x="{left + _PAD_PX}" y="14">{text}</text>\n'
        "</g>\n</svg>\n"
    )


def _colour(found: Grade) -> str:
    if found.failed:
        return "red"
    return "brightgreen" if found.passed == found.cases else "yellow"
