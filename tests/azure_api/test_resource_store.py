"""What is kept of resources: found without regard to case, changed by one at a time."""

import pytest
from msgspec.structs import replace

from fairwarning.azure_api import resource_store as module
from fairwarning.azure_api.resource_store import ResourceRecord, ResourceStore
from fairwarning.core.model import operator_actor
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import RecordChanged
from fairwarning.stores.memory import MemoryStore
from tests.core.builders import T0

ME = operator_actor("me")


def kept(id: str, **body: object) -> ResourceRecord:
    name = id.rpartition("/")[2]
    return ResourceRecord(id=id, type="A/b", name=name, body=body, created_ms=T0, unique_id="u")


@pytest.fixture
def resources() -> ResourceStore:
    return ResourceStore(MemoryStore(VirtualClock()))


async def test_a_resource_is_found_in_any_spelling_and_keeps_its_own(
    resources: ResourceStore,
) -> None:
    await resources.put(kept("/subscriptions/S/resourceGroups/G", tags={"a": "Ü"}), by=ME)
    found = await resources.find("subscriptions/s/RESOURCEGROUPS/g/")
    assert found is not None
    assert (found.id, found.body) == ("/subscriptions/S/resourceGroups/G", {"tags": {"a": "Ü"}})
    assert await resources.find("/subscriptions/S/resourceGroups/H") is None


async def test_of_two_who_change_the_same_one_must_look_again(resources: ResourceStore) -> None:
    first = await resources.put(kept("/x"), by=ME)
    await resources.put(replace(first, body={"n": 1}), by=ME)
    with pytest.raises(RecordChanged):
        await resources.put(replace(first, body={"n": 2}), by=ME)
    with pytest.raises(RecordChanged):
        await resources.put(kept("/X"), by=ME)
    with pytest.raises(RecordChanged):
        await resources.delete(first, by=ME)
    found = await resources.find("/x")
    assert found is not None
    await resources.delete(found, by=ME)
    with pytest.raises(RecordChanged):
        await resources.delete(found, by=ME)
    await resources.delete_by_id("/x", by=ME)
    assert await resources.find("/x") is None


async def test_who_is_late_does_nothing_to_a_namesake_that_came_since(
    resources: ResourceStore,
) -> None:
    """Its record has the revision that the old one had."""
    old = await resources.put(kept("/x", n=1), by=ME)
    await resources.delete(old, by=ME)
    new = await resources.put(kept("/x", n=2), by=ME)
    assert new.revision == old.revision
    with pytest.raises(RecordChanged):
        await resources.put(replace(old, body={"n": 3}), by=ME)
    with pytest.raises(RecordChanged):
        await resources.delete(old, by=ME)
    assert await resources.find("/x") == new


async def test_below_are_those_whose_id_goes_on_page_by_page(
    resources: ResourceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAGE", 2)
    for id in ("/g", "/g/1", "/g/2", "/G/3/a", "/g1", "/gg/1", "/f/1"):
        await resources.put(kept(id), by=ME)
    assert [each.id async for each in resources.list_below("/g")] == ["/g/1", "/g/2", "/G/3/a"]
