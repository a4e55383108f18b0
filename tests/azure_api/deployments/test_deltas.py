"""What a deployment would change in one resource."""

from typing import Any

import pytest

from fairwarning.azure_api.deployments.deltas import deltas_of


def kinds(before: Any, after: Any) -> list[tuple[str, str]]:
    found = deltas_of({"a": before}, {"a": after})
    return [(each["path"], each["propertyChangeType"]) for each in found]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("x", "X", []),
        ("x", "y", [("a", "Modify")]),
        ("x", None, []),
        (None, "x", [("a", "Create")]),
        (None, {}, []),
        (None, [], []),
        (None, 0, [("a", "Create")]),
        ({"b": 1, "c": 2}, {"B": 1}, []),
        ({"b": 1}, {"b": {"c": 1}}, [("a.b", "Modify")]),
        ([1], [1], []),
        ([1], [], [("a", "Array")]),
        ("West Europe", "westeurope", [("a", "Modify")]),
    ],
)
def test_only_what_the_template_writes_is_compared(
    before: Any, after: Any, expected: list[tuple[str, str]]
) -> None:
    assert kinds(before, after) == expected


def test_the_items_of_a_list_are_compared_by_their_place() -> None:
    (found,) = deltas_of({"a": [1, 2, 3]}, {"a": [1, 5]})
    assert [(each["path"], each["propertyChangeType"]) for each in found["children"]] == [
        ("1", "Modify"),
        ("2", "Delete"),
    ]
    (found,) = deltas_of({"a": [1]}, {"a": [1, 5]})
    assert [(each["path"], each["propertyChangeType"]) for each in found["children"]] == [
        ("1", "Create")
    ]
    assert found["children"][0]["after"] == 5


def test_a_location_is_the_same_with_and_without_spaces() -> None:
    assert deltas_of({"location": "West Europe"}, {"location": "westeurope"}) == []
    (found,) = deltas_of({"location": "West Europe"}, {"Location": "eastus"})
    assert (found["before"], found["after"]) == ("West Europe", "eastus")


def test_the_head_of_a_resource_never_changes() -> None:
    assert deltas_of({"id": "/a", "name": "a"}, {"ID": "/b", "Name": "b", "apiVersion": "1"}) == []
