"""A node on a virtual clock, and a client that makes scale sets in ARM and looks at them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from fairwarning.core.resources import DEFAULT_SUBSCRIPTION
from tests.operator_api.rig import Rig, running
from tests.support.http_client import http_client

GROUP = f"/subscriptions/{DEFAULT_SUBSCRIPTION}/resourceGroups/default"
COMPUTE = f"{GROUP}/providers/Microsoft.Compute"
SETS = f"{COMPUTE}/virtualMachineScaleSets"
NETWORK = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/net"
SUBNET = f"{NETWORK}/subnets/front"
SOON = "40s"
"""Long enough for any impact of the simulated driver."""


class Arm:
    """The fleet of `tests.operator_api.rig`, in the resource group `default`."""

    def __init__(self, rig: Rig, client: httpx.AsyncClient) -> None:
        self.rig = rig
        self.client = client

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        status: int = 200,
        version: str = "2025-04-01",
        **query: str,
    ) -> httpx.Response:
        """`path` is below the scale sets of the group unless it begins with a slash."""
        url = path if path.startswith("/") else f"{SETS}/{path}"
        parameters = {"api-version": version, **{f"${n}": v for n, v in query.items()}}
        answer = await self.client.request(method, url, params=parameters, json=body)
        assert answer.status_code == status, answer.text
        return answer

    async def get(self, path: str, status: int = 200, **more: str) -> Any:
        return (await self.ask("GET", path, None, status, **more)).json()

    async def refused(
        self, method: str, path: str, body: object = None, status: int = 400, **more: str
    ) -> tuple[str, str]:
        """The code and the message, as az prints them."""
        error = (await self.ask(method, path, body, status, **more)).json()["error"]
        return error["code"], error["message"]

    async def make(self, name: str = "s", **more: Any) -> Any:
        answer = await self.ask("PUT", name, body_of(**more), 201)
        return answer.json()

    async def post(self, path: str, *ids: str) -> httpx.Response:
        return await self.ask("POST", path, {"instanceIds": list(ids)} if ids else None, 202)

    async def progress(self, started: httpx.Response) -> Any:
        """What a client that waits is told."""
        answer = await self.client.get(started.headers["Azure-AsyncOperation"])
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def status(self, started: httpx.Response) -> str:
        return str((await self.progress(started))["status"])

    async def ids(self, name: str = "s") -> list[str]:
        list_reply = await self.get(f"{name}/virtualMachines")
        return [each["instanceId"] for each in list_reply["value"]]

    async def capacity(self, name: str = "s") -> int:
        return int((await self.get(name))["sku"]["capacity"])

    async def pass_time(self, by: str = SOON) -> None:
        await self.rig.post("/clock/advance", {"by": by})

    async def events(self, instance: str, version: str = "2019-01-01") -> list[Any]:
        """As the instance sees them."""
        return list((await self._metadata("GET", instance, version))["Events"])

    async def approve(self, instance: str, event_id: str) -> None:
        requests = {"StartRequests": [{"EventId": event_id}]}
        await self._metadata("POST", instance, "2019-01-01", requests)

    async def _metadata(self, method: str, instance: str, version: str, body: Any = None) -> Any:
        url = f"{self.rig.node.metadata_urls[0]}/vm/{instance}/metadata/scheduledevents"
        answer = await self.client.request(
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


@asynccontextmanager
async def arm_running(**settings: Any) -> AsyncIterator[Arm]:
    async with (
        running(**settings) as rig,
        http_client(rig.node.control_url) as client,
    ):
        yield Arm(rig, client)
