"""A client that creates scale sets in ARM and looks at them."""

import json
from typing import Any

import httpx

from tests.azure_api.arm_client import COMPUTE, NETWORK, ArmClient

SETS = f"{COMPUTE}/virtualMachineScaleSets"
VNET = f"{NETWORK}/virtualNetworks/net"
SUBNET = f"{VNET}/subnets/front"


class ScaleSetClient(ArmClient):
    version = "2025-04-01"
    base = SETS

    async def make(self, name: str = "s", **more: Any) -> Any:
        answer = await self.ask("PUT", name, body_of(**more), 201)
        return answer.json()

    async def post(self, path: str, *ids: str) -> httpx.Response:
        return await self.ask("POST", path, {"instanceIds": list(ids)} if ids else None, 202)

    async def ids(self, name: str = "s") -> list[str]:
        list_reply = await self.get(f"{name}/virtualMachines")
        return [each["instanceId"] for each in list_reply["value"]]

    async def capacity(self, name: str = "s") -> int:
        return int((await self.get(name))["sku"]["capacity"])

    async def events(self, instance: str, version: str = "2019-01-01") -> list[Any]:
        """As the instance sees them."""
        return list((await self._metadata("GET", instance, version))["Events"])

    async def approve(self, instance: str, event_id: str) -> None:
        requests = {"StartRequests": [{"EventId": event_id}]}
        await self._metadata("POST", instance, "2019-01-01", requests)

    async def _metadata(self, method: str, instance: str, version: str, body: Any = None) -> Any:
        url = f"{self.rig.node.metadata_urls[0]}/vm/{instance}/metadata/scheduledevents"
        answer = await self.http.request(
            method, url, params={"api-version": version}, headers={"Metadata": "true"}, json=body
        )
        assert answer.status_code == 200, answer.text
        return json.loads(answer.text or "null")


def told(timeout: str = "PT5M", enable: object = True) -> dict[str, Any]:
    """A profile with a terminate notification."""
    profile = {"notBeforeTimeout": timeout, "enable": enable}
    return {"scheduledEventsProfile": {"terminateNotificationProfile": profile}}


def telling(timeout: str = "PT5M", enable: object = True) -> dict[str, Any]:
    """The body of a PUT or PATCH that only says that."""
    return {"properties": {"virtualMachineProfile": told(timeout, enable)}}


def body_of(capacity: object = 2, mode: str = "Uniform", **profile: Any) -> dict[str, Any]:
    return {
        "location": "local",
        "sku": {"name": "Standard_D2s_v5", "tier": "Standard", "capacity": capacity},
        "properties": {
            "orchestrationMode": mode,
            "upgradePolicy": {"mode": "manual"},
            "virtualMachineProfile": {
                "osProfile": {"computerNamePrefix": "vm", "adminUsername": "me"},
                "storageProfile": {"imageReference": {"offer": "Ubuntu", "sku": "22.04"}},
                **profile,
            },
        },
    }


def connected(subnet: str = SUBNET) -> dict[str, Any]:
    """A profile whose instances get addresses; booleans as az writes them."""
    address = {"name": "ip", "properties": {"subnet": {"id": subnet}}}
    card = {"name": "nic", "properties": {"primary": "true", "ipConfigurations": [address]}}
    return {"networkProfile": {"networkInterfaceConfigurations": [card]}}


NETWORK_BODY = {
    "location": "local",
    "properties": {
        "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
        "subnets": [{"name": "front", "properties": {"addressPrefix": "10.0.0.0/28"}}],
    },
}
