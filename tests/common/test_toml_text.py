"""TOML that costs too much is refused at its line, and all other text is parsed as it is."""

import pytest

from fairwarning.common import toml_text
from fairwarning.common.toml_text import (
    KEY_PARTS_MAX,
    NESTING_MAX,
    WORD_CHARS_MAX,
    NotToml,
    end_of_string,
    parse_toml,
)


def line_of(text: str) -> tuple[int, str]:
    with pytest.raises(NotToml) as caught:
        parse_toml(text)
    assert str(caught.value) == f"line {caught.value.line}: {caught.value.message}"
    return caught.value.line, caught.value.message


def test_a_mark_of_byte_order_and_line_ends_of_windows_are_no_mistake() -> None:
    assert parse_toml("\ufeffa = 1\r\nb = 2\r\n") == ("a = 1\nb = 2\n", {"a": 1, "b": 2})


def test_a_mistake_is_found_at_its_line_or_at_the_last() -> None:
    assert line_of("a = 1\nb = = 2\n")[0] == 2
    assert line_of("a = 1\nb = [")[0] == 2
    assert line_of("a = 1\nb = 'c")[0] == 2
    assert line_of("a = 1\na = 2\n")[0] == 2


def test_a_key_has_a_limit_of_parts() -> None:
    most = ".".join(["a"] * KEY_PARTS_MAX)
    assert parse_toml(f"\n{most} = 1\n{most}b = 1.5")
    assert line_of(f"\n{most}.a = 1") == (2, f"a key has at most {KEY_PARTS_MAX} parts")


def test_values_nest_up_to_a_limit() -> None:
    deep = "a = " + "[" * NESTING_MAX + "]" * NESTING_MAX + "\n"
    assert parse_toml(deep + deep.replace("a", "b"))
    assert "nest at most" in line_of("\n\na = " + "[" * (NESTING_MAX + 1))[1]
    assert line_of("\n\na = " + "[" * (NESTING_MAX + 1))[0] == 3
    assert line_of("a = " + "{a=" * (NESTING_MAX + 1))[0] == 1


def test_a_word_has_a_limit_at_the_end_too() -> None:
    most = "a" * (WORD_CHARS_MAX - 1)
    assert parse_toml(f"\n{most} =1")
    assert line_of(f"\n{most}aa =1")[0] == 2
    assert line_of("b=1\n" + "a" * (WORD_CHARS_MAX + 1))[0] == 2
    assert "at most 1,000 letters" not in line_of("b=1\n" + "a" * WORD_CHARS_MAX)[1]


def test_strings_and_comments_are_not_counted() -> None:
    long = "[" * (WORD_CHARS_MAX + 5)
    for text in (f'"{long}"', f"'{long}'", f'"""{long}\n"""', f"'''{long}\n'''", f"1 # {long}"):
        parse_toml(f"a = {text}\n")
    parse_toml(f"a = 1\n# {long}")


def test_keys_and_values_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toml_text, "KEYS_MAX", 3)
    monkeypatch.setattr(toml_text, "VALUES_MAX", 4)
    assert parse_toml("a=1\nb=2\nc=3\n")
    assert line_of("a=1\nb=2\nc=3\nd=4\n")[0] == 4
    assert parse_toml("a=[1,2,3,4]")
    assert line_of("a=[1,2,3,4,5]")[0] == 1
    assert line_of("[[a]]\n[[a]]\n[[a]]")[0] == 3


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("''", 2), ("'a'b'", 3), ("'a\n'", None), ("'a", None), ("'a'\n", 3),
        ('""', 2), ('"a\\"b"c', 6), ('"a\n"', None), ('"a\\', None),
        ("''''''", 6), ("'''a''''", 8), ("'''a'''''", 9), ("'''a''''''", 9), ("'''a''", None),
        ('""""""', 6), ('"""a"b""c"""', 12), ('"""a"""""""', 9), ('"""a\\""""', 9),
        ('"""a', None), ('"' + "\\n" * 2_500 + '"', 5_002),
    ],
)  # fmt: skip
def test_where_a_string_ends(text: str, end: int | None) -> None:
    assert end_of_string(text, 0) == end
    shifted = end_of_string(f"key={text}", 4)
    assert shifted == (None if end is None else end + 4)
