"""Networks are kept as they were written, with the ids and states that Azure's clients need."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fairwarning.azure_api.networks.subnets import SUBNETS_MAX
from fairwarning.engine.protocols import StoreDown
from tests.azure_api.arm_client import GROUP, NETWORK, S, running_client
from tests.azure_api.vm_client import (
    NICS,
    SUBNET,
    VNET,
    VmClient,
    interface_body,
    network_body,
)


@pytest_asyncio.fixture
async def azure() -> AsyncIterator[VmClient]:
    async with running_client(VmClient) as found:
        yield found


async def test_a_network_comes_back_as_it_was_written(azure: VmClient) -> None:
    made = await azure.put(VNET, {**network_body(), "tags": {"team": "a"}})
    shown = await azure.get(VNET)
    assert shown == made
    assert (shown["id"], shown["name"]) == (VNET, "net")
    assert shown["type"] == "Microsoft.Network/virtualNetworks"
    assert shown["tags"] == {"team": "a"}
    properties = shown["properties"]
    assert properties["addressSpace"] == {"addressPrefixes": ["10.9.0.0/24"]}
    assert properties["provisioningState"] == "Succeeded"
    assert properties["resourceGuid"]
    (subnet,) = properties["subnets"]
    assert subnet["id"] == SUBNET
    assert subnet["properties"] == {
        "addressPrefix": "10.9.0.0/24",
        "provisioningState": "Succeeded",
    }


async def test_names_are_found_whatever_their_case_and_slashes(azure: VmClient) -> None:
    await azure.network()
    path = f"{GROUP}/providers/microsoft.network//VIRTUALNETWORKS/NET".replace(
        "resourceGroups/default", "resourcegroups/DEFAULT"
    )
    assert (await azure.get(path))["id"] == VNET


async def test_a_put_merges_and_gives_another_etag(azure: VmClient) -> None:
    before = await azure.put(VNET, network_body())
    after = await azure.put(VNET, {"location": "local", "tags": {"team": "b"}}, 200)
    assert after["properties"]["addressSpace"] == before["properties"]["addressSpace"]
    assert after["tags"] == {"team": "b"}
    assert after["etag"] != before["etag"]
    patched = await azure.patch(VNET, {"tags": {"other": "c"}})
    assert patched["tags"] == {"other": "c"}
    assert len(patched["properties"]["subnets"]) == 1


async def test_a_subnet_is_a_resource_of_its_own_too(azure: VmClient) -> None:
    await azure.put(
        VNET,
        network_body("10.9.0.0/25")
        | {"properties": {"addressSpace": {"addressPrefixes": ["10.9.0.0/24"]}}},
    )
    await azure.put(SUBNET, {"properties": {"addressPrefix": "10.9.0.0/25"}})
    await azure.put(f"{VNET}/subnets/outer", {"properties": {"addressPrefix": "10.9.0.128/25"}})
    list_reply = await azure.get(f"{VNET}/subnets")
    assert [each["name"] for each in list_reply["value"]] == ["inner", "outer"]
    assert (await azure.get(SUBNET))["properties"]["addressPrefix"] == "10.9.0.0/25"
    await azure.ask("DELETE", f"{VNET}/subnets/outer")
    await azure.ask("DELETE", f"{VNET}/subnets/outer", status=204)
    assert len((await azure.get(VNET))["properties"]["subnets"]) == 1


async def test_parts_that_are_added_at_once_are_all_kept(tmp_path: Path) -> None:
    async with running_client(VmClient, store_url=f"sqlite:///{tmp_path}/fleet.db") as azure:
        await _add_rules(azure)


async def _add_rules(azure: VmClient) -> None:
    balancer = f"{NETWORK}/loadBalancers/lb"
    await azure.put(balancer, {"location": "local", "properties": {}})
    rules = [f"{balancer}/inboundNatRules/rule-{n}" for n in range(8)]
    await asyncio.gather(*(azure.put(each, {"properties": {"backendPort": 22}}) for each in rules))
    kept = (await azure.get(balancer))["properties"]["inboundNatRules"]
    assert {each["id"] for each in kept} == set(rules)


async def test_a_part_that_is_put_again_stays_one(azure: VmClient) -> None:
    balancer = f"{NETWORK}/loadBalancers/lb"
    await azure.put(balancer, {"location": "local", "properties": {}})
    for name in ("one", "two"):
        body = {"properties": {"backendPort": 22, "protocol": "Tcp"}}
        await azure.put(f"{balancer}/inboundNatRules/{name}", body)
    again = {"properties": {"backendPort": 23}}
    await azure.put(f"{balancer}/inboundNatRules/ONE", again, 200)
    await azure.refused("PATCH", f"{balancer}/inboundNatRules/three", again, 404)
    rules = (await azure.get(balancer))["properties"]["inboundNatRules"]
    found = {each["name"].lower(): each["properties"] for each in rules}
    assert len(rules) == 2
    assert (found["one"]["backendPort"], found["one"]["protocol"]) == (23, "Tcp")
    assert found["two"]["backendPort"] == 22


async def test_a_part_needs_its_whole(azure: VmClient) -> None:
    code, message = await azure.refused("PUT", SUBNET, {"properties": {}}, 404)
    assert code == "ParentResourceNotFound"
    assert "'net'" in message


async def test_lists_are_by_type_in_the_group_and_in_the_subscription(azure: VmClient) -> None:
    other = f"{S}/resourceGroups/other"
    await azure.put(other, {"location": "local"})
    far = f"{other}/providers/Microsoft.Network/virtualNetworks/far"
    await azure.network()
    await azure.put(far, network_body("10.8.0.0/24"))
    await azure.put(f"{NETWORK}/publicIPAddresses/ip", {"location": "local"})

    async def ids(path: str) -> list[str]:
        return [each["id"] for each in (await azure.get(path))["value"]]

    assert await ids(f"{NETWORK}/virtualNetworks") == [VNET]
    assert await ids(f"{S}/providers/Microsoft.Network/virtualNetworks") == [VNET, far]
    assert await ids(f"{NETWORK}/networkSecurityGroups") == []


async def test_no_public_address_is_made_up(azure: VmClient) -> None:
    made = await azure.put(
        f"{NETWORK}/publicIPAddresses/ip",
        {"location": "local", "sku": {"name": "Standard"}, "properties": {}},
    )
    assert "ipAddress" not in made["properties"]
    assert made["sku"] == {"name": "Standard", "tier": "Regional"}


async def test_what_cannot_be_a_network_is_refused(azure: VmClient) -> None:
    code, _ = await azure.refused("PUT", VNET, network_body("10.9.0.1/24"))
    assert code == "InvalidAddressPrefixFormat"
    assert (await azure.refused("PUT", VNET, network_body("fe80::/64")))[
        0
    ] == "InvalidAddressPrefix"
    outside = network_body()
    outside["properties"]["subnets"][0]["properties"]["addressPrefix"] = "10.10.0.0/24"
    assert (await azure.refused("PUT", VNET, outside))[0] == "NetcfgSubnetRangeOutsideVnet"
    twice = network_body()
    twice["properties"]["subnets"] *= 2
    assert (await azure.refused("PUT", VNET, twice))[0] == "DuplicateResourceName"
    one, other = twice["properties"]["subnets"]
    twice["properties"]["subnets"] = [one, {**other, "name": "other"}]
    assert (await azure.refused("PUT", VNET, twice))[0] == "NetcfgSubnetRangesOverlap"
    assert (await azure.refused("PUT", VNET, {"properties": {}}))[0] == "LocationRequired"
    without = {"location": "local", "properties": {"addressSpace": {"addressPrefixes": []}}}
    code, _ = await azure.refused("PUT", VNET, without)
    assert code == "NoAddressPrefixOrPoolProvided"
    wrong = {"location": "local", "properties": {"addressSpace": "10.0.0.0/8"}}
    assert (await azure.refused("PUT", VNET, wrong))[0] == "InvalidRequestFormat"
    long = f"{NETWORK}/virtualNetworks/{'n' * 81}"
    assert (await azure.refused("PUT", long, network_body()))[0] == "InvalidResourceName"
    await azure.ask("GET", VNET, status=404)


def _crowded(count: int) -> Any:
    subnets = [
        {"name": f"s{n}", "properties": {"addressPrefix": f"10.{n >> 8}.{n & 255}.0/24"}}
        for n in range(count)
    ]
    space = {"addressPrefixes": ["10.0.0.0/8"]}
    return {"location": "local", "properties": {"addressSpace": space, "subnets": subnets}}


async def test_a_network_has_room_for_as_many_subnets_as_on_azure(azure: VmClient) -> None:
    await azure.put(VNET, _crowded(SUBNETS_MAX))
    code, _ = await azure.refused("PUT", VNET, _crowded(SUBNETS_MAX + 1))
    assert code == "SubnetLimitExceeded"


async def test_a_network_moves_nowhere(azure: VmClient) -> None:
    await azure.network()
    moved = {**network_body(), "location": "West Europe"}
    code, message = await azure.refused("PUT", VNET, moved, 409)
    assert code == "InvalidResourceLocation"
    assert "'westeurope'" in message


async def test_a_subnet_stays_while_an_interface_is_in_it(azure: VmClient) -> None:
    await azure.network()
    await azure.interface("nic")
    emptied = {"location": "local", "properties": {"subnets": []}}
    for method, path, body in (
        ("DELETE", VNET, None),
        ("DELETE", SUBNET, None),
        ("PUT", VNET, emptied),
    ):
        code, message = await azure.refused(method, path, body)
        assert code == "InUseSubnetCannotBeDeleted"
        assert f"{NICS}/nic" in message
    await azure.ask("DELETE", f"{NICS}/nic")
    await azure.ask("DELETE", VNET)
    await azure.ask("DELETE", VNET, status=204)
    await azure.ask("GET", VNET, status=404)


async def test_a_network_that_is_changed_while_it_is_deleted_keeps_what_is_below_it(
    azure: VmClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await azure.network()
    below = f"{VNET}/taps/one"
    await azure.put(below, {"properties": {}})
    store = azure.rig.node.store
    real, is_first = store.drop, iter((True,))

    async def drop(kind: str, key: str, **named: Any) -> Any:
        if next(is_first, False):
            await azure.patch(VNET, {"tags": {"owner": "ana"}})
        return await real(kind, key, **named)

    monkeypatch.setattr(store, "drop", drop)
    await azure.refused("DELETE", VNET, status=409)
    assert (await azure.get(VNET))["tags"] == {"owner": "ana"}
    await azure.get(below)
    await azure.ask("DELETE", VNET)
    await azure.ask("GET", below, status=404)


async def test_what_a_deletion_that_broke_off_left_below_goes_with_the_next(
    azure: VmClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await azure.network()
    below = f"{VNET}/taps/one"
    await azure.put(below, {"properties": {}})
    store = azure.rig.node.store
    real = store.drop

    async def drop(kind: str, key: str, **named: Any) -> Any:
        if "/taps/" in key:
            raise StoreDown("switched off by the test")
        return await real(kind, key, **named)

    with monkeypatch.context() as outage:
        outage.setattr(store, "drop", drop)
        await azure.ask("DELETE", VNET, status=503)
    await azure.http.delete(VNET, params={"api-version": "2026-04-01"})
    await azure.network()
    await azure.ask("GET", below, status=404)


@pytest.mark.parametrize(
    ("type", "sent", "usual"),
    [
        (
            "virtualNetworks",
            {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}, "dhcpOptions": {}},
            {"subnets": [], "virtualNetworkPeerings": [], "enableDdosProtection": False},
        ),
        (
            "publicIPAddresses",
            {"dnsSettings": {}},
            {
                "publicIPAddressVersion": "IPv4",
                "publicIPAllocationMethod": "Dynamic",
                "idleTimeoutInMinutes": 4,
                "ipTags": [],
            },
        ),
        ("routeTables", {}, {"routes": [], "disableBgpRoutePropagation": False}),
        (
            "networkInterfaces",
            {"dnsSettings": {}},
            {
                "ipConfigurations": [],
                "enableAcceleratedNetworking": False,
                "enableIPForwarding": False,
                "vnetEncryptionSupported": False,
                "dnsSettings": {"dnsServers": [], "appliedDnsServers": []},
            },
        ),
    ],
)
async def test_what_the_owner_left_open_has_the_values_of_azure(
    azure: VmClient, type: str, sent: dict[str, Any], usual: dict[str, Any]
) -> None:
    """As in the examples VirtualNetworkCreate, PublicIpAddressCreateDefaults and others."""
    path = f"{NETWORK}/{type}/n"
    await azure.put(path, {"location": "local", "properties": sent})
    shown = (await azure.get(path))["properties"]
    full = {name: value for name, value in sent.items() if value != {}}
    for name in ("provisioningState", "resourceGuid", "macAddress"):
        shown.pop(name, None)
    assert shown == {**full, **usual}
    changed = await azure.put(path, await azure.get(path), 200)
    assert changed["properties"]["provisioningState"] == "Succeeded"


@pytest.mark.parametrize(
    ("type", "sent", "shown"),
    [
        ("publicIPAddresses", None, {"name": "Basic", "tier": "Regional"}),
        ("publicIPAddresses", {"name": "Standard"}, {"name": "Standard", "tier": "Regional"}),
        ("loadBalancers", None, {"name": "Basic", "tier": "Regional"}),
        ("loadBalancers", {"tier": "Global"}, {"name": "Basic", "tier": "Global"}),
        ("publicIPPrefixes", None, {"name": "Standard", "tier": "Regional"}),
    ],
)
async def test_a_size_that_was_left_open_is_azures(
    azure: VmClient, type: str, sent: Any, shown: Any
) -> None:
    """As in the examples PublicIpAddressCreateDefaults and LoadBalancerCreateWithZones."""
    path = f"{NETWORK}/{type}/n"
    await azure.put(path, {"location": "local", "sku": sent, "properties": {}})
    assert (await azure.get(path))["sku"] == shown


async def test_a_security_group_shows_azures_own_rules(azure: VmClient) -> None:
    """As in the example NetworkSecurityGroupCreate."""
    path = f"{NETWORK}/networkSecurityGroups/g"
    made = (await azure.put(path, {"location": "local"}))["properties"]
    assert (made["securityRules"], made["flushConnection"]) == ([], False)
    rules = made["defaultSecurityRules"]
    assert [each["name"] for each in rules] == [
        "AllowVnetInBound",
        "AllowAzureLoadBalancerInBound",
        "DenyAllInBound",
        "AllowVnetOutBound",
        "AllowInternetOutBound",
        "DenyAllOutBound",
    ]
    assert rules[0]["id"] == f"{path}/defaultSecurityRules/AllowVnetInBound"
    assert rules[0]["properties"] == {
        "provisioningState": "Succeeded",
        "description": "Allow inbound traffic from all VMs in VNET",
        "protocol": "*",
        "sourcePortRange": "*",
        "destinationPortRange": "*",
        "sourceAddressPrefix": "VirtualNetwork",
        "destinationAddressPrefix": "VirtualNetwork",
        "access": "Allow",
        "priority": 65000,
        "direction": "Inbound",
    }
    again = await azure.put(path, await azure.get(path), 200)
    assert again["properties"]["defaultSecurityRules"] == [
        {**each, "etag": again["etag"]} for each in rules
    ]


async def test_the_parts_of_a_load_balancer_name_the_rules_that_use_them(azure: VmClient) -> None:
    """As in the example LoadBalancerCreateWithZones."""
    path = f"{NETWORK}/loadBalancers/lb"

    def to(name: str) -> dict[str, str]:
        return {"id": f"{path}/{name}"}

    front, pool, probe = "frontendIPConfigurations/f", "backendAddressPools/b", "probes/p"
    ports = {"frontendPort": 80, "backendPort": 80, "protocol": "Tcp"}
    rule = {
        "frontendIPConfiguration": to(front.upper().replace(path.upper(), path)),
        "backendAddressPool": to(pool),
        "probe": to(probe),
    }
    body = {
        "frontendIPConfigurations": [{"name": "f", "properties": {"subnet": {"id": SUBNET}}}],
        "backendAddressPools": [{"name": "b"}],
        "probes": [{"name": "p", "properties": {"protocol": "Tcp", "port": 80}}],
        "loadBalancingRules": [{"name": "r", "properties": {**rule, **ports}}],
        "inboundNatRules": [
            {"name": "n", "properties": {"frontendIPConfiguration": to(front), **ports}}
        ],
    }
    made = (await azure.put(path, {"location": "local", "properties": body}))["properties"]
    rules = {"loadBalancingRules": [to("loadBalancingRules/r")]}
    assert made["frontendIPConfigurations"][0]["properties"] == {
        "provisioningState": "Succeeded",
        "privateIPAllocationMethod": "Dynamic",
        "subnet": {"id": SUBNET},
        **rules,
        "inboundNatRules": [to("inboundNatRules/n")],
    }
    done = {"provisioningState": "Succeeded"}
    assert made["backendAddressPools"][0]["properties"] == {**done, **rules}
    assert (await azure.get(f"{path}/{pool}"))["properties"] == {**done, **rules}
    shown = made["probes"][0]["properties"]
    assert shown == {**done, **rules, "protocol": "Tcp", "port": 80, "probeThreshold": 1}
    assert made["loadBalancingRules"][0]["properties"] == {
        **done,
        **rule,
        **ports,
        "enableFloatingIP": False,
        "idleTimeoutInMinutes": 4,
        "loadDistribution": "Default",
        "disableOutboundSnat": False,
    }


async def test_a_public_address_names_what_uses_it(azure: VmClient) -> None:
    """As in the example PublicIpAddressGet."""
    await azure.network()
    used, free = (f"{NETWORK}/publicIPAddresses/{name}" for name in ("used", "free"))
    for path in (used, free):
        await azure.put(path, {"location": "local", "properties": {}})
    await azure.interface("card", publicIPAddress={"id": used.upper()})
    owner = {"id": f"{NICS}/card/ipConfigurations/one"}
    assert (await azure.get(used))["properties"]["ipConfiguration"] == owner
    rows = (await azure.get(f"{NETWORK}/publicIPAddresses"))["value"]
    assert {row["name"]: row["properties"].get("ipConfiguration") for row in rows} == {
        "used": owner,
        "free": None,
    }


async def test_what_is_not_there_is_not_changed_nor_shown(azure: VmClient) -> None:
    await azure.ask("PATCH", VNET, {"tags": {}}, 404)
    await azure.ask("GET", f"{VNET}/subnets", status=404)
    assert (await azure.refused("GET", SUBNET, status=404))[0] == "ParentResourceNotFound"
    await azure.network()
    assert (await azure.refused("GET", f"{VNET}/subnets/x", status=404))[0] == "ResourceNotFound"
    await azure.ask("PATCH", f"{VNET}/subnets/x", {"properties": {}}, 404)


async def test_an_interface_is_in_a_subnet_that_is_there(azure: VmClient) -> None:
    await azure.network()
    for subnet, code in (
        ("", "InvalidRequestFormat"),
        (VNET, "InvalidResourceReference"),
        (f"{VNET}/subnets/x", "InvalidResourceReference"),
        ("nowhere", "InvalidResourceReference"),
    ):
        body = interface_body(subnet)
        assert (await azure.refused("PUT", f"{NICS}/a", body))[0] == code, subnet
    await azure.ask("GET", f"{NICS}/a", status=404)
    await azure.put(f"{NICS}/a", interface_body(f"{SUBNET.upper()}/"))


async def test_an_ip_configuration_is_changed_only_with_its_interface(azure: VmClient) -> None:
    await azure.network()
    await azure.interface("a")
    one = f"{NICS}/a/ipConfigurations/one"
    assert (await azure.get(one))["name"] == "one"
    for method in ("PUT", "DELETE"):
        answer = await azure.ask(method, one, {"properties": {}}, 405)
        assert answer.headers["allow"] == "GET"
    assert (await azure.get(one))["properties"]["privateIPAddress"] == "10.9.0.4"


async def test_a_subnet_that_another_network_has_too_may_go(azure: VmClient) -> None:
    await azure.network()
    await azure.interface("a")
    other = VNET.replace("/net", "/other")
    await azure.put(other, network_body())
    await azure.ask("DELETE", f"{other}/subnets/inner")
    code, _ = await azure.refused(
        "DELETE", SUBNET.upper().replace("SUBSCRIPTIONS", "subscriptions")
    )
    assert code == "InUseSubnetCannotBeDeleted"
