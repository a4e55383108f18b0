"""/metadata/instance and /metadata/versions."""

import json
from itertools import pairwise

import pytest
from msgspec.structs import replace

from fairwarning.metadata.instance_metadata import INSTANCE_VERSIONS
from tests.metadata.rig import Rig

INSTANCE = "/metadata/instance"


async def tree(rig: Rig, path: str = "", version: str = "2021-12-13", **more: str) -> object:
    response = await rig.ask(f"{INSTANCE}{path}?api-version={version}", **more)  # type: ignore[arg-type]
    assert response.status == 200, response.body
    return json.loads(response.body)


async def test_the_whole_tree_is_strings(rig: Rig) -> None:
    def leaves(node: object) -> list[object]:
        if isinstance(node, dict):
            return [leaf for child in node.values() for leaf in leaves(child)]
        if isinstance(node, list):
            return [leaf for child in node for leaf in leaves(child)]
        return [node]

    assert all(isinstance(leaf, str) for leaf in leaves(await tree(rig)))


async def test_what_we_know_of_the_instance(rig: Rig) -> None:
    compute = await tree(rig, "/compute", source="127.0.2.11")
    assert isinstance(compute, dict)
    assert compute["name"] == "workers_1"
    assert compute["vmScaleSetName"] == "workers"
    assert compute["osProfile"] == {"computerName": "workers000001"}
    assert compute["platformUpdateDomain"] == "1"
    assert compute["priority"] == "Regular"
    assert compute["resourceId"].endswith("/virtualMachineScaleSets/workers/virtualMachines/1")
    assert len(compute["vmId"]) == 36
    assert compute["placementGroupId"]
    assert compute["evictionPolicy"] == "", "only of a Spot instance"
    assert compute["virtualMachineScaleSet"] == {"id": ""}, "only of a flexible set"


async def test_a_version_has_the_fields_of_its_time(rig: Rig) -> None:
    fields = {version: await tree(rig, "/compute", version) for version in INSTANCE_VERSIONS[1:]}
    known = list(fields.values())
    for older, newer in pairwise(known):
        assert isinstance(older, dict)
        assert isinstance(newer, dict)
        assert older.keys() <= newer.keys()
    first, last = known[0], known[-1]
    assert isinstance(first, dict)
    assert isinstance(last, dict)
    assert "tags" not in first
    assert "physicalZone" in last


@pytest.mark.parametrize(
    ("field", "since"),
    [("tags", "2017-08-01"), ("tagsList", "2019-06-04"), ("physicalZone", "2023-11-15")],
)
async def test_a_field_comes_with_its_version_and_not_before(
    rig: Rig, field: str, since: str
) -> None:
    before = INSTANCE_VERSIONS[INSTANCE_VERSIONS.index(since) - 1]
    for version, is_there in ((before, False), (since, True)):
        compute = await tree(rig, "/compute", version)
        assert isinstance(compute, dict)
        assert (field in compute) is is_there


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/compute/name", "web-0"),
        ("/Compute/Name", "web-0"),
        ("/network/interface/0/ipv4/ipAddress/0/privateIpAddress", "127.0.1.10"),
        ("", "compute/\nnetwork/"),
        ("/network/interface", "0/"),
    ],
)
async def test_sub_paths_as_text(rig: Rig, path: str, text: str) -> None:
    response = await rig.ask(f"{INSTANCE}{path}?api-version=2021-02-01&format=text")
    assert (response.status, response.body.decode()) == (200, text)
    assert response.headers["content-type"].startswith("text/plain")


async def test_sub_paths_as_json(rig: Rig) -> None:
    assert await tree(rig, "/network/interface/0/ipv4/ipAddress") == [
        {"privateIpAddress": "127.0.1.10", "publicIpAddress": ""}
    ]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/compute/name?api-version=2021-02-01", 400),
        ("/compute/nothing?api-version=2021-02-01", 404),
        ("/network/interface/1?api-version=2021-02-01", 404),
        ("/network/interface/x?api-version=2021-02-01", 404),
        ("?api-version=2020-07-01", 400),
        ("?api-version=2021-02-01&format=xml", 400),
        ("", 400),
    ],
)
async def test_what_is_refused(rig: Rig, path: str, status: int) -> None:
    response = await rig.ask(f"{INSTANCE}{path}")
    assert response.status == status
    assert "error" in response.json()


async def test_the_newest_versions_are_those_of_this_endpoint(rig: Rig) -> None:
    response = await rig.ask(INSTANCE)
    assert response.json()["newest-versions"] == ["2025-04-07", "2024-07-17", "2024-03-15"]


async def test_versions_need_no_version(rig: Rig) -> None:
    response = await rig.ask("/metadata/versions")
    assert response.json() == {"apiVersions": list(INSTANCE_VERSIONS)}
    assert list(INSTANCE_VERSIONS) == sorted(INSTANCE_VERSIONS)
    assert (await rig.ask("/metadata/versions", headers={})).status == 400
    assert (await rig.ask("/metadata/versions", method="POST")).status == 405


async def test_an_instance_that_the_roster_does_not_have_is_not_found(rig: Rig) -> None:
    scope, rosters = rig.web, rig.engine.views.rosters
    left = {name: each for name, each in scope.roster.instances.items() if name != "web-0"}
    rosters.put(scope.id, replace(scope.roster, instances=left))
    path = "/metadata/instance?api-version=2021-02-01"
    assert (await rig.ask(path)).status == 404
    assert (await rig.ask(path, source="127.0.1.11")).status == 200
