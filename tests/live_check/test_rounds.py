"""What a round reads at its end."""

from typing import Any

import pytest

from fairwarning.live_check.rounds import history_since

PAGES: dict[str, dict[str, Any]] = {
    "/history?limit=500": {"entries": [{"position": "9"}, {"position": "8"}], "next": "8"},
    "/history?limit=500&after=8": {"entries": [{"position": "7"}, {"position": "6"}], "next": "6"},
    "/history?limit=500&after=6": {"entries": [{"position": "5"}], "next": None},
}


async def read(path: str) -> dict[str, Any]:
    return PAGES[path]


@pytest.mark.parametrize(
    ("begin", "expected"),
    [("9", ""), ("8", "9"), ("7", "98"), ("6", "987"), ("none of them", "98765")],
)
async def test_the_history_of_a_round_begins_after_the_line_that_was_newest_before(
    begin: str, expected: str
) -> None:
    found = await history_since(begin, read)
    assert "".join(each["position"] for each in found) == expected
