"""Private addresses: one owner each, whatever network they are in."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.networks.addresses import (
    FRESH_MS,
    KIND,
    _try_claim,
    allocate,
    release,
    reserve,
    usable,
)
from fairwarning.azure_api.networks.render import mac_address
from fairwarning.azure_api.networks.subnets import read_prefix
from fairwarning.azure_api.resource_store import KIND as SHELF
from fairwarning.engine.protocols import StoreDown
from tests.azure_api.arm_client import GROUP, NETWORK, S, running_client
from tests.azure_api.vm_client import (
    NICS,
    SUBNET,
    VmClient,
    interface_body,
    network_body,
    uses,
)
from tests.operator_api.rig import ME


@pytest_asyncio.fixture
async def azure() -> AsyncIterator[VmClient]:
    async with running_client(VmClient) as found:
        yield found


def address_of(interface: Any) -> str:
    return str(interface["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"])


@given(length=st.integers(20, 32))
def test_the_first_four_and_the_last_are_nobodys(length: int) -> None:
    prefix = read_prefix(f"10.0.0.0/{length}")
    found = list(usable(prefix))
    whole = [str(each) for each in prefix]
    assert found == whole[4:-1]


def test_ipv6_has_no_broadcast_so_its_last_address_is_usable() -> None:
    prefix = read_prefix("fd00::/124")
    assert list(usable(prefix)) == [str(each) for each in prefix][4:]


async def test_interfaces_get_the_lowest_free_address(azure: VmClient) -> None:
    await azure.network()
    first, second = await azure.interface("one"), await azure.interface("two")
    assert [address_of(first), address_of(second)] == ["10.9.0.4", "10.9.0.5"]
    (configuration,) = first["properties"]["ipConfigurations"]
    assert configuration["id"] == f"{NICS}/one/ipConfigurations/one"
    assert configuration["properties"]["privateIPAllocationMethod"] == "Dynamic"
    assert configuration["properties"]["primary"] is True
    await azure.ask("DELETE", f"{NICS}/one")
    assert address_of(await azure.interface("three")) == "10.9.0.4"


async def test_an_interface_that_could_not_be_written_gives_its_address_back(
    azure: VmClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await azure.network()
    store = azure.rig.node.store
    real = store.keep

    async def keep(kind: str, key: str, *rest: Any, **named: Any) -> Any:
        if kind == SHELF:
            raise StoreDown("switched off by the test")
        return await real(kind, key, *rest, **named)

    with monkeypatch.context() as outage:
        outage.setattr(store, "keep", keep)
        await azure.ask("PUT", f"{NICS}/one", interface_body(), status=503)
    assert address_of(await azure.interface("two")) == "10.9.0.4"


async def test_many_at_once_get_one_each(tmp_path: Path) -> None:
    async with running_client(VmClient, store_url=f"sqlite:///{tmp_path}/fleet.db") as azure:
        await azure.network()
        made = await asyncio.gather(*(azure.interface(f"nic-{n}") for n in range(20)))
    assert len({address_of(each) for each in made}) == 20


async def test_two_networks_of_the_same_prefix_do_not_collide(azure: VmClient) -> None:
    await azure.network()
    await azure.put(f"{S}/resourceGroups/other", {"location": "local"})
    network = f"{S}/resourceGroups/other/providers/Microsoft.Network"
    await azure.put(f"{network}/virtualNetworks/net", network_body())
    subnet = f"{network}/virtualNetworks/net/subnets/inner"
    first = await azure.interface("nic")
    second = await azure.put(f"{network}/networkInterfaces/nic", interface_body(subnet))
    assert address_of(first) != address_of(second)


async def test_an_address_of_the_fleet_is_not_given_out(azure: VmClient) -> None:
    """127.0.1.10 to .13 belong to the members of `web`, whom nobody made through ARM."""
    await azure.put(f"{NETWORK}/virtualNetworks/net", network_body("127.0.1.8/29"))
    assert address_of(await azure.interface("nic")) == "127.0.1.14"
    code, _ = await azure.refused("PUT", f"{NICS}/more", interface_body())
    assert code == "SubnetIsFull"
    asked = interface_body(privateIPAllocationMethod="Static", privateIPAddress="127.0.1.12")
    assert (await azure.refused("PUT", f"{NICS}/more", asked))[0] == "PrivateIPAddressInUse"


async def test_a_static_address_is_the_asked_one(azure: VmClient) -> None:
    await azure.network()
    static: dict[str, Any] = {
        "privateIPAllocationMethod": "static",
        "privateIPAddress": "10.9.0.77",
    }
    made = await azure.interface("nic", **static)
    assert address_of(made) == "10.9.0.77"
    assert address_of(await azure.interface("nic", 200, **static)) == "10.9.0.77"
    for address, expected in (
        ("10.9.0.77", "PrivateIPAddressInUse"),
        ("10.9.1.4", "PrivateIPAddressNotInSubnet"),
        ("10.9.0.3", "PrivateIPAddressNotInSubnet"),
        ("ten", "InvalidPrivateIPAddress"),
        ("fe80::5", "InvalidPrivateIPAddress"),
        ("fe80::5%eth0", "InvalidPrivateIPAddress"),
    ):
        body = interface_body(**{**static, "privateIPAddress": address})
        assert (await azure.refused("PUT", f"{NICS}/other", body))[0] == expected


async def test_a_changed_interface_gives_its_old_address_back(azure: VmClient) -> None:
    await azure.network()
    await azure.interface("nic")
    moved: dict[str, Any] = {"privateIPAllocationMethod": "Static", "privateIPAddress": "10.9.0.77"}
    await azure.interface("nic", 200, **moved)
    assert address_of(await azure.interface("next")) == "10.9.0.4"


async def test_an_interface_that_moves_to_another_subnet_gets_an_address_there(
    azure: VmClient,
) -> None:
    body = network_body("10.9.0.0/25")
    body["properties"]["addressSpace"] = {"addressPrefixes": ["10.9.0.0/24"]}
    outer = {"name": "outer", "properties": {"addressPrefix": "10.9.0.128/25"}}
    body["properties"]["subnets"].append(outer)
    await azure.put(f"{NETWORK}/virtualNetworks/net", body)
    await azure.interface("nic")
    moved = await azure.put(f"{NICS}/nic", interface_body(SUBNET.replace("inner", "outer")), 200)
    assert address_of(moved) == "10.9.0.132"
    assert address_of(await azure.interface("next")) == "10.9.0.4"


async def test_a_machine_follows_the_address_of_its_interface(azure: VmClient) -> None:
    await azure.network()
    await azure.interface("nic")
    await azure.vm("box", networkProfile=uses("nic"))
    moved: dict[str, Any] = {"privateIPAllocationMethod": "Static", "privateIPAddress": "10.9.0.77"}
    await azure.interface("nic", 200, **moved)
    assert (await azure.instance("box"))["addresses"] == ["10.9.0.77"]


async def test_a_refused_interface_leaves_nothing_behind(azure: VmClient) -> None:
    await azure.network()
    body = interface_body()
    stray = {"name": "two", "properties": {"subnet": {"id": f"{SUBNET}-nowhere"}}}
    body["properties"]["ipConfigurations"].append(stray)
    code, message = await azure.refused("PUT", f"{NICS}/nic", body)
    assert code == "InvalidResourceReference"
    assert f"{SUBNET}-nowhere" in message
    assert address_of(await azure.interface("nic")) == "10.9.0.4"


async def test_both_kinds_of_address(azure: VmClient) -> None:
    body = network_body()
    prefixes = ["10.9.0.0/24", "fd00:9::/64"]
    body["properties"]["addressSpace"]["addressPrefixes"] = prefixes
    body["properties"]["subnets"][0]["properties"] = {"addressPrefixes": prefixes}
    await azure.put(f"{NETWORK}/virtualNetworks/net", body)
    wanted = interface_body()
    sixth = {"subnet": {"id": SUBNET}, "privateIPAddressVersion": "IPv6"}
    wanted["properties"]["ipConfigurations"].append({"name": "six", "properties": sixth})
    await azure.put(f"{NICS}/nic", wanted)
    await azure.vm("box", networkProfile=uses("nic"))
    assert (await azure.instance("box"))["addresses"] == ["10.9.0.4", "fd00:9::4"]


async def test_what_nobody_owns_is_free_again_after_a_moment(azure: VmClient) -> None:
    """An allocation bridges the time until the fleet has the address, and no more."""
    await azure.network()
    arm = azure.arm
    assert await allocate(arm, SUBNET, 2, by=ME) == ["10.9.0.4", "10.9.0.5"]
    assert await allocate(arm, SUBNET, 1, by=ME) == ["10.9.0.6"]
    await azure.advance(f"{FRESH_MS // 1_000}s")
    assert await allocate(arm, SUBNET, 1, by=ME) == ["10.9.0.4"]


async def test_an_allocation_is_all_or_nothing(azure: VmClient) -> None:
    await azure.put(f"{NETWORK}/virtualNetworks/net", network_body("10.9.0.0/28"))
    arm = azure.arm
    with pytest.raises(ArmError, match="12 IP addresses"):
        await allocate(arm, SUBNET, 12, by=ME)
    assert len(await allocate(arm, SUBNET, 11, by=ME)) == 11


async def test_who_is_late_takes_no_address_from_its_next_owner(azure: VmClient) -> None:
    """One who read that it was free, and one who gives back what it no longer has."""
    arm, address = azure.arm, "10.9.0.4"
    await azure.network()
    (claimed,) = await allocate(arm, SUBNET, 1, by=ME, owner=f"{NICS}/gone")
    assert claimed == address
    await azure.advance(f"{FRESH_MS // 1_000}s")
    old = await arm.control.store.record(KIND, address)
    await release(arm, address, f"{NICS}/gone", by=ME)
    await reserve(arm, address, f"{NICS}/next", by=ME)
    new = await arm.control.store.record(KIND, address)
    assert old is not None
    assert new is not None
    assert (old.key, old.revision) == (new.key, new.revision)
    assert not await _try_claim(arm, address, old, f"{NICS}/late", ME)
    await release(arm, address, f"{NICS}/gone", by=ME)
    await release(arm, address, "", by=ME)
    assert await arm.control.store.record(KIND, address) == new
    await release(arm, address, f"{NICS}/NEXT", by=ME)
    assert await arm.control.store.record(KIND, address) is None


async def test_addresses_of_a_group_that_is_gone_are_free(azure: VmClient) -> None:
    await azure.put(f"{NETWORK}/virtualNetworks/net", network_body("10.9.0.0/29"))
    for name in ("a", "b", "c"):
        await azure.interface(name)
        await azure.arm.resources.delete_by_id(f"{NICS}/{name}", by=ME)
    await azure.advance(f"{FRESH_MS // 1_000}s")
    assert address_of(await azure.interface("d")) == "10.9.0.4"


def test_a_hardware_address_is_stable_and_locally_administered() -> None:
    id = f"{GROUP}/providers/Microsoft.Network/networkInterfaces/nic"
    assert mac_address(id) == mac_address(id.upper()) != mac_address(f"{id}2")
    assert int(mac_address(id)[:2], 16) & 0b11 == 0b10


def _two(*addresses: str, names: tuple[str, str] = ("a", "b")) -> Any:
    asked = [
        {"privateIPAllocationMethod": "Static", "privateIPAddress": each} if each else {}
        for each in addresses
    ]
    configurations = [
        {"name": name, "properties": {"subnet": {"id": SUBNET}, **each}}
        for name, each in zip(names, asked, strict=True)
    ]
    return {"location": "local", "properties": {"ipConfigurations": configurations}}


async def test_two_configurations_of_an_interface_never_share_an_address(azure: VmClient) -> None:
    await azure.network()
    code, _ = await azure.refused("PUT", f"{NICS}/nic", _two("10.9.0.7", "10.9.0.7"))
    assert code == "PrivateIPAddressInUse"
    same = _two("", "", names=("a", "A"))
    assert (await azure.refused("PUT", f"{NICS}/nic", same))[0] == "DuplicateResourceName"
    await azure.put(f"{NICS}/nic", _two("10.9.0.7", "10.9.0.4"))


async def test_an_interface_has_a_bounded_number_of_configurations(azure: VmClient) -> None:
    await azure.network()
    body = _two("", "")
    body["properties"]["ipConfigurations"] *= 129
    code, _ = await azure.refused("PUT", f"{NICS}/nic", body)
    assert code == "IpConfigurationLimitExceeded"


async def test_an_address_that_another_node_gave_out_just_now_is_taken(
    azure: VmClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await azure.network()
    await azure.interface("nic")
    await azure.vm("box", networkProfile=uses("nic"))
    arm = azure.arm
    await arm.control.store.drop("arm-address", "10.9.0.4", by=ME)
    monkeypatch.setattr(type(arm.control.store), "is_shared", True)
    monkeypatch.setattr(arm.control.views, "by_address", lambda _: None)
    assert await allocate(arm, SUBNET, 1, by=ME) == ["10.9.0.5"]
    assert await arm.control.store.record("arm-address", "10.9.0.4") is None


async def test_the_same_interface_put_twice_at_once_keeps_its_address(
    azure: VmClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await azure.network()
    store, both = azure.rig.node.store, asyncio.Barrier(2)
    real, waits = store.keep, iter((True, True))

    async def keep(kind: str, key: str, body: str, **named: Any) -> Any:
        if kind == SHELF and next(waits, False):
            await both.wait()
        return await real(kind, key, body, **named)

    body = interface_body(privateIPAllocationMethod="Static", privateIPAddress="10.9.0.9")
    monkeypatch.setattr(store, "keep", keep)
    parameters = {"api-version": "2026-04-01"}
    answers = await asyncio.gather(
        *(azure.http.put(f"{NICS}/one", json=body, params=parameters) for _ in range(2))
    )
    assert sorted(each.status_code for each in answers) == [200, 201]
    assert [each.key for each in await store.records(KIND, limit=9)] == ["10.9.0.9"]
    code, _ = await azure.refused("PUT", f"{NICS}/two", body)
    assert code == "PrivateIPAddressInUse"


async def test_an_interface_shows_the_settings_that_nobody_gave(azure: VmClient) -> None:
    await azure.network()
    shown = (await azure.interface("plain"))["properties"]
    assert shown["dnsSettings"] == {"dnsServers": [], "appliedDnsServers": []}
    assert shown["enableIPForwarding"] is False
    assert shown["enableAcceleratedNetworking"] is False
