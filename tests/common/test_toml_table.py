"""A reader gets each value or a mistake, and the mistakes are in the order of their lines."""

from datetime import date
from typing import Any

from fairwarning.common.toml_table import BadFile, Mistake, TomlTable, suggestion, with_lines


def table_of(**raw: Any) -> TomlTable:
    return TomlTable(raw, (), [])


def said(table: TomlTable) -> list[str]:
    return [message for _, message in table.mistakes]


def test_a_key_that_nobody_asked_for_is_a_mistake_with_a_hint() -> None:
    table = table_of(nmae="a", size=3)
    assert (table.text("name"), table.whole("size", 1, least=0, most=9)) == ("", 3)
    table.close()
    assert table.mistakes == [(("nmae",), "unknown key `nmae`; did you mean `name`?")]
    assert suggestion("zzz", ["name", "size"]) == "it may be name, size"


def test_a_value_of_another_type_is_a_mistake_and_counts_as_missing() -> None:
    table = table_of(a=True, b=1, c=date(2024, 1, 1), d={}, e=1.0)
    assert table.whole("a", 7, least=0, most=9) == 7
    assert table.flag("b", True) is True
    assert table.text("c", "x", needed=True) == "x"
    assert table.texts("d") == ()
    assert table.take("e", int, str) is None
    assert said(table) == [
        "`a` must be a whole number, not true or false",
        "`b` must be true or false, not a whole number",
        "`c` must be a string, not a date",
        "`d` must be a list, not a table",
        "`e` must be a whole number or a string, not a number",
    ]


def test_a_needed_text_is_there_and_not_empty() -> None:
    table = TomlTable({"a": ""}, ("step", 2), [])
    assert (table.text("a", needed=True), table.text("a"), table.text("b", "z")) == ("", "", "z")
    assert table.text("b", "z", needed=True) == "z"
    assert table.mistakes == [
        (("step", 2, "a"), "`a` must not be empty"),
        (("step", 2), "`b` is missing; add it"),
    ]


def test_a_number_may_be_at_either_end_of_its_range() -> None:
    table = table_of(low=1, high=9, under=0, over=10)
    found = [table.whole(key, 5, least=1, most=9) for key in table.raw]
    assert found == [1, 9, 5, 5]
    assert said(table) == ["`under` must be from 1 to 9", "`over` must be from 1 to 9"]


def test_lists_and_tables_of_strings_have_nothing_else_in_them() -> None:
    table = table_of(a=["x", "y"], b=["x", ""], c=["x", 1], d={"k": "v"}, e={"k": "v", "l": 1})
    assert [table.texts(key) for key in "abc"] == [("x", "y"), (), ()]
    assert [table.strings(key) for key in "def"] == [{"k": "v"}, {}, {}]
    assert [path for path, _ in table.mistakes] == [("b",), ("c",), ("e",)]
    assert table.flag("missing") is False


def test_tables_within_share_the_mistakes_and_know_their_place() -> None:
    table = table_of(one={"a": 1}, many=[{"b": 2}, 7, {"c": 3}])
    inner = table.table("one")
    assert inner is not None
    inner.close()
    found = table.tables("many")
    assert [each.path for each in found] == [("many", 0), ("many", 2)]
    found[1].close()
    assert [path for path, _ in table.mistakes] == [("one", "a"), ("many",), ("many", 2, "c")]
    assert (table.table("none"), table.tables("none")) == (None, [])


def test_mistakes_are_told_in_the_order_of_their_lines() -> None:
    text = "a = 1\nb = 2\n"
    found = with_lines([(("b",), "second"), (("a",), "first")], text)
    error = BadFile([*found, Mistake(line=None, message="whole")])
    assert str(error) == "whole; line 1: first; line 2: second"
