"""Text of other programs on a terminal, and lists of names."""

import pytest

from fairwarning.common.escape import clean, counted, one_line, several


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"), ("grün 日本", "grün 日本"), ("a\tb\nc", "a\tb\nc"),
        ("a\rb", "a\ufffdb"), ("\x1b[2J", "\ufffd[2J"), ("a\u202eb", "a\ufffdb"),
        ("a\ud800b", "a\ufffdb"), ("\x7f", "\ufffd"),
    ],
)  # fmt: skip
def test_no_text_moves_the_cursor(text: str, shown: str) -> None:
    assert clean(text) == shown
    assert one_line(f" {text}\n") == " ".join(shown.split())


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, ""), (1, "0"), (4, "0, 1, 2, 3"), (5, "0, 1, 2, 3 and 1 more")],
)
def test_many_names_are_counted(count: int, shown: str) -> None:
    assert several([str(n) for n in range(count)]) == shown


def test_one_is_singular() -> None:
    assert [counted(n, "event") for n in (0, 1, 2)] == ["0 events", "1 event", "2 events"]
