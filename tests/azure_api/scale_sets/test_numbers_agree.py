"""A fleet file, the operator API and ARM name the instances of a scale set by the same rules."""

from collections.abc import Awaitable, Callable

from fairwarning.fleet_file.apply import current_scopes
from tests.azure_api.scale_set_client import ScaleSetClient, body_of

SIZES = (3, 1, 0, 2, 120, 99, 101, 0, 1)
"""Shrinks, an empty set, and more than one placement group."""


async def test_numbers_go_on_in_the_same_way_whoever_resizes(arm: ScaleSetClient) -> None:
    def by_file(size: int) -> Awaitable[object]:
        resource = {"name": "by-file", "capacity": size, "test": True}
        return arm.rig.post("/fleet", {"scale_set": [resource]})

    def by_api(size: int) -> Awaitable[object]:
        return arm.rig.post("/scopes/by-api/scale", {"capacity": size}, 202)

    def by_arm(size: int) -> Awaitable[object]:
        return arm.ask("PATCH", "by-arm", {"sku": {"capacity": size}})

    created = [{"name": name, "capacity": 2, "test": True} for name in ("by-file", "by-api")]
    await arm.rig.post("/fleet", {"scale_set": created})
    await arm.ask("PUT", "by-arm", body_of(capacity=2), 201)
    numbers = {}
    for name, resize in (("by-file", by_file), ("by-api", by_api), ("by-arm", by_arm)):
        numbers[name] = await _played(arm, name, resize)
    assert numbers["by-file"] == numbers["by-api"] == numbers["by-arm"]
    assert numbers["by-file"][2] == []
    assert numbers["by-file"][3] == [3, 4]


async def test_a_set_that_was_removed_begins_at_0(arm: ScaleSetClient) -> None:
    await arm.rig.post("/fleet", {"scale_set": [{"name": "s", "capacity": 2, "test": True}]})
    await arm.rig.delete("/scopes/s")
    await arm.rig.post("/fleet", {"scale_set": [{"name": "s", "capacity": 2, "test": True}]})
    assert await _numbers(arm, "s") == [0, 1]
    await arm.ask("DELETE", "s", None, 202)
    await arm.advance()
    await arm.ask("PUT", "s", body_of(capacity=2), 201)
    assert await _numbers(arm, "s") == [0, 1]


async def test_arm_goes_on_counting_in_a_set_that_a_file_made_and_emptied(
    arm: ScaleSetClient,
) -> None:
    for size in (2, 0):
        resource = {"name": "s", "capacity": size, "test": True}
        await arm.rig.post("/fleet", {"scale_set": [resource]})
    await arm.ask("PUT", "s", body_of(capacity=2), 200)
    assert await _numbers(arm, "s") == [2, 3]


async def _played(
    arm: ScaleSetClient, name: str, resize: Callable[[int], Awaitable[object]]
) -> list[list[int]]:
    found = []
    for size in SIZES:
        await resize(size)
        await arm.advance()
        found.append(await _numbers(arm, name))
    return found


async def _numbers(arm: ScaleSetClient, name: str) -> list[int]:
    scopes = await current_scopes(arm.rig.node.store)
    rosters = [each.roster for each in scopes if each.roster.resource == name]
    return sorted(int(each.name.rpartition("_")[2]) for roster in rosters for each in roster.live)
