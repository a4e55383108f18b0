"""What is kept of resources: found without regard to case, changed by one at a time."""

import pytest
from msgspec.structs import replace

from fairwarning.azure_api import resource_store as module
from fairwarning.azure_api.resource_store import Kept, Shelf
from fairwarning.core.model import operator_actor
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import RecordChanged
from fairwarning.stores.memory import MemoryStore
from tests.core.builders import T0

ME = operator_actor("me")


def kept(id: str, **body: object) -> Kept:
    name = id.rpartition("/")[2]
    return Kept(id=id, type="A/b", name=name, body=body, created_ms=T0, unique_id="u")


@pytest.fixture
def shelf() -> Shelf:
    return Shelf(MemoryStore(VirtualClock()))


async def test_a_resource_is_found_in_any_spelling_and_keeps_its_own(shelf: Shelf) -> None:
    await shelf.put(kept("/subscriptions/S/resourceGroups/G", tags={"a": "Ü"}), by=ME)
    found = await shelf.find("subscriptions/s/RESOURCEGROUPS/g/")
    assert found is not None
    assert (found.id, found.body) == ("/subscriptions/S/resourceGroups/G", {"tags": {"a": "Ü"}})
    assert await shelf.find("/subscriptions/S/resourceGroups/H") is None


async def test_of_two_who_change_the_same_one_must_look_again(shelf: Shelf) -> None:
    first = await shelf.put(kept("/x"), by=ME)
    await shelf.put(replace(first, body={"n": 1}), by=ME)
    with pytest.raises(RecordChanged):
        await shelf.put(replace(first, body={"n": 2}), by=ME)
    with pytest.raises(RecordChanged):
        await shelf.put(kept("/X"), by=ME)
    with pytest.raises(RecordChanged):
        await shelf.drop(first, by=ME)
    found = await shelf.find("/x")
    assert found is not None
    await shelf.drop(found, by=ME)
    with pytest.raises(RecordChanged):
        await shelf.drop(found, by=ME)
    await shelf.drop_any("/x", by=ME)
    assert await shelf.find("/x") is None


async def test_who_is_late_does_nothing_to_a_namesake_that_came_since(shelf: Shelf) -> None:
    """Its record has the revision that the old one had."""
    old = await shelf.put(kept("/x", n=1), by=ME)
    await shelf.drop(old, by=ME)
    new = await shelf.put(kept("/x", n=2), by=ME)
    assert new.revision == old.revision
    with pytest.raises(RecordChanged):
        await shelf.put(replace(old, body={"n": 3}), by=ME)
    with pytest.raises(RecordChanged):
        await shelf.drop(old, by=ME)
    assert await shelf.find("/x") == new


async def test_below_are_those_whose_id_goes_on_page_by_page(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAGE", 2)
    for id in ("/g", "/g/1", "/g/2", "/G/3/a", "/g1", "/gg/1", "/f/1"):
        await shelf.put(kept(id), by=ME)
    assert [each.id async for each in shelf.below("/g")] == ["/g/1", "/g/2", "/G/3/a"]
