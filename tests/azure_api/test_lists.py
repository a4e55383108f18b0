"""Lists, a page at a time."""

import asyncio
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.lists import PAGE_ITEMS_MAX, SLICE, list_reply, page_json
from fairwarning.azure_api.paths import resource_path
from fairwarning.azure_api.request import ArmCall
from fairwarning.operator_api.auth import LOCAL

PATH = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines"


def _call(**query: str) -> ArmCall:
    named = {name if name == "api-version" else f"${name}": text for name, text in query.items()}
    path = resource_path(PATH)
    return ArmCall(method="GET", path=path, query=named, caller=LOCAL, base_url="http://x")


def _follow(link: str) -> ArmCall:
    parts = urlsplit(link)
    path = resource_path(parts.path)
    query = dict(parse_qsl(parts.query))
    return ArmCall(method="GET", path=path, query=query, caller=LOCAL, base_url="http://x")


def _items(count: int) -> list[dict[str, Any]]:
    return [{"id": f"{PATH}/vm{number}"} for number in range(count)]


@given(count=st.integers(0, 40), top=st.integers(1, 12))
def test_pages_hold_everything_once_and_in_order(count: int, top: int) -> None:
    items = _items(count)
    call, seen = _call(top=str(top)), []
    while True:
        found = page_json(call, reversed(items))
        seen += found["value"]
        assert len(found["value"]) <= top
        assert found["value"] or not items, "a link leads to more"
        if "nextLink" not in found:
            break
        call = _follow(found["nextLink"])
    assert seen == items


def test_a_page_has_an_end_of_its_own() -> None:
    found = page_json(_call(), _items(PAGE_ITEMS_MAX + 1))
    assert len(found["value"]) == PAGE_ITEMS_MAX
    assert "nextLink" in found
    assert len(page_json(_call(top="9999"), _items(PAGE_ITEMS_MAX + 1))["value"]) == PAGE_ITEMS_MAX


def test_what_goes_between_two_pages_hides_nothing() -> None:
    items = _items(6)
    first = page_json(_call(top="3"), items)
    rest = page_json(_follow(first["nextLink"]), items[3:])
    assert rest["value"] == items[3:]


@pytest.mark.parametrize("top", ["0", "-1", "x", "²", "99999999999"])
def test_a_top_that_is_no_number_is_refused(top: str) -> None:
    with pytest.raises(ArmError) as refused:
        page_json(_call(top=top), [])
    assert refused.value.status == 400


def test_names_that_differ_in_their_zeros_alone_are_all_shown() -> None:
    items = [{"id": f"{PATH}/vm{number}"} for number in ("1", "01", "001")]
    first = page_json(_call(top="1"), items)
    second = page_json(_follow(first["nextLink"]), items)
    third = page_json(_follow(second["nextLink"]), items)
    shown = [*first["value"], *second["value"], *third["value"]]
    assert sorted(each["id"] for each in shown) == sorted(each["id"] for each in items)


def test_a_token_of_any_length_is_read() -> None:
    assert page_json(_call(skiptoken="9" * 10_000), _items(3))["value"] == _items(3)


async def test_a_long_list_leaves_others_their_turns() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    items = [{"id": f"/x/{number}"} for number in range(10 * SLICE, 0, -1)]
    reply = await list_reply(_call(top="3"), items)
    counting.cancel()
    assert isinstance(reply.body, dict)
    assert [each["id"] for each in reply.body["value"]] == ["/x/1", "/x/2", "/x/3"]
    assert "nextLink" in reply.body
    assert turns >= 10
