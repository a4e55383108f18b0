"""A node on a virtual clock, asked through ARM as az and the SDKs ask it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from fairwarning.azure_api.operations import Operations
from fairwarning.azure_api.request import Arm, ArmCall, Reply
from fairwarning.azure_api.resource_store import ResourceStore
from fairwarning.boot import make_control
from fairwarning.core.resources import DEFAULT_SUBSCRIPTION
from fairwarning.operator_api.context import AzureDoor
from tests.operator_api.rig import Rig, running
from tests.support.http_client import http_client

SUBSCRIPTION = f"/subscriptions/{DEFAULT_SUBSCRIPTION}"
GROUP = f"{SUBSCRIPTION}/resourceGroups/default"
COMPUTE = f"{GROUP}/providers/Microsoft.Compute"
NETWORK = f"{GROUP}/providers/Microsoft.Network"
VMS = f"{COMPUTE}/virtualMachines"
SETS = f"{COMPUTE}/availabilitySets"
NICS = f"{NETWORK}/networkInterfaces"
VNET = f"{NETWORK}/virtualNetworks/net"
SUBNET = f"{VNET}/subnets/inner"


class Azure:
    """The fleet of `tests.operator_api.rig`, all in the group `default` and location `local`."""

    def __init__(self, rig: Rig, client: httpx.AsyncClient) -> None:
        self.rig = rig
        self.client = client

    @property
    def arm(self) -> Arm:
        """What handlers work with."""
        node = self.rig.node

        async def answer(_: ArmCall) -> Reply:
            raise NotImplementedError

        return Arm(
            control=make_control(
                node.engine, node.store, node.engine.views, node.clock, AzureDoor()
            ),
            resources=ResourceStore(node.store),
            operations=Operations(node.store, node.clock),
            answer=answer,
        )

    async def ask(
        self, method: str, path: str, body: object = None, status: int = 200, **query: Any
    ) -> httpx.Response:
        parameters = {"api-version": "2026-04-01"}
        parameters |= {name.replace("_", "-"): value for name, value in query.items()}
        answer = (
            await self.client.request(method, path, json=body, params=parameters)
            if body is not None
            else await self.client.request(method, path, params=parameters)
        )
        assert answer.status_code == status, answer.text
        return answer

    async def get(self, path: str, **query: Any) -> Any:
        return (await self.ask("GET", path, **query)).json()

    async def put(self, path: str, body: object, status: int = 201, **query: Any) -> Any:
        return (await self.ask("PUT", path, body, status, **query)).json()

    async def patch(self, path: str, body: object, **query: Any) -> Any:
        return (await self.ask("PATCH", path, body, **query)).json()

    async def refused(
        self, method: str, path: str, body: object = None, status: int = 400, **query: Any
    ) -> tuple[str, str]:
        """Code and message."""
        error = (await self.ask(method, path, body, status, **query)).json()["error"]
        return error["code"], error["message"]

    async def begin(self, method: str, path: str) -> str:
        """A long-running operation; where to ask for it."""
        answer = await self.ask(method, path, status=202)
        assert answer.headers["retry-after"] == "1"
        return answer.headers["azure-asyncoperation"]

    async def state(self, url: str) -> str:
        return str((await self.client.get(url)).json()["status"])

    async def vm(self, name: str, status: int = 201, **properties: Any) -> Any:
        return await self.put(f"{VMS}/{name}", vm_body(**properties), status)

    async def network(self) -> None:
        await self.put(VNET, network_body())

    async def interface(self, name: str, status: int = 201, **configuration: Any) -> Any:
        return await self.put(f"{NICS}/{name}", interface_body(**configuration), status)

    async def instance(self, name: str) -> Any:
        """As the operator API shows it."""
        return await self.rig.get(f"/instances/{name}")

    async def metadata(self, name: str) -> Any:
        url = f"{self.rig.node.metadata_urls[0]}/vm/{name}/metadata/instance"
        answer = await self.client.get(
            url, params={"api-version": "2021-12-13"}, headers={"Metadata": "true"}
        )
        return answer.json()

    async def events(self, name: str) -> Any:
        return (await self.rig.document(name))["Events"]

    async def advance(self, by: str) -> None:
        await self.rig.post("/clock/advance", {"by": by})


def vm_body(**properties: Any) -> dict[str, Any]:
    return {
        "location": "local",
        "properties": {"hardwareProfile": {"vmSize": "Standard_D2s_v5"}, **properties},
    }


def uses(*names: str) -> dict[str, Any]:
    """A VM's networkProfile."""
    return {"networkInterfaces": [{"id": f"{NICS}/{name}"} for name in names]}


def network_body(prefix: str = "10.9.0.0/24") -> dict[str, Any]:
    subnet = {"name": "inner", "properties": {"addressPrefix": prefix}}
    return {
        "location": "local",
        "properties": {"addressSpace": {"addressPrefixes": [prefix]}, "subnets": [subnet]},
    }


def interface_body(subnet: str = SUBNET, **configuration: Any) -> dict[str, Any]:
    properties = {"subnet": {"id": subnet}, **configuration}
    return {
        "location": "local",
        "properties": {"ipConfigurations": [{"name": "one", "properties": properties}]},
    }


@asynccontextmanager
async def running_azure(**settings: Any) -> AsyncIterator[Azure]:
    async with (
        running(**settings) as rig,
        http_client(rig.node.control_url) as client,
    ):
        yield Azure(rig, client)
