"""What a PUT or PATCH changes, and what it leaves."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.azure_api.merge_patch import merge


def test_what_is_not_said_stays() -> None:
    before = {"a": {"b": 1, "c": [1, 2]}, "d": 4}
    assert merge(before, {"a": {"c": [3]}}) == {"a": {"b": 1, "c": [3]}, "d": 4}
    assert before == {"a": {"b": 1, "c": [1, 2]}, "d": 4}


def test_a_null_says_nothing() -> None:
    said = {"a": None, "b": {"c": None, "d": 1}, "e": [{"f": None}, None]}
    assert merge({"a": 1}, said) == {"a": 1, "b": {"d": 1}, "e": [{}]}


@pytest.mark.parametrize("name", ["terminateNotificationProfile", "osImageNotificationProfile"])
def test_a_null_profile_is_off(name: str) -> None:
    before = {"scheduledEventsProfile": {name: {"enable": True}, "other": {}}}
    after = merge(before, {"scheduledEventsProfile": {name: None}})
    assert after == {"scheduledEventsProfile": {"other": {}}}


def test_tags_are_replaced_as_a_whole_and_left_as_they_are() -> None:
    assert merge({"tags": {"a": "1"}}, {"tags": {"enable": "true"}}) == {"tags": {"enable": "true"}}


def test_secrets_are_dropped_wherever_they_are() -> None:
    for name in ("adminPassword", "AdminPassword", "adminpassword"):
        said = {"properties": {"osProfile": {name: "x", "adminUsername": "u"}}}
        assert merge({}, said) == {"properties": {"osProfile": {"adminUsername": "u"}}}


def test_a_name_may_mean_another_thing_elsewhere() -> None:
    image = {"properties": {"storageProfile": {"imageReference": {"sku": "22.04"}}}}
    assert merge({}, image) == image


_names = st.sampled_from(["enable", "a", "tags", "id", "overprovision", "zones"])
_leaves = st.none() | st.booleans() | st.sampled_from(["true", "x", "1"]) | st.integers(0, 3)
_bodies = st.dictionaries(
    _names,
    st.recursive(
        _leaves,
        lambda inside: st.lists(inside, max_size=2) | st.dictionaries(_names, inside, max_size=3),
    ),
    max_size=3,
)


@given(before=_bodies, said=_bodies)
def test_saying_it_again_changes_nothing_more(before: dict[str, Any], said: dict[str, Any]) -> None:
    once = merge(merge({}, before), said)
    assert merge(once, said) == once
    assert merge(once, once) == once
