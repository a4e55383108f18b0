"""A client that creates VMs, networks and availability sets in ARM, and looks at them."""

from typing import Any

from fairwarning.azure_api.operations import Operations
from fairwarning.azure_api.request import Arm, ArmCall, Reply
from fairwarning.azure_api.resource_store import ResourceStore
from fairwarning.boot import make_control
from fairwarning.operator_api.context import AzureListener
from tests.azure_api.arm_client import COMPUTE, NETWORK, ArmClient

VMS = f"{COMPUTE}/virtualMachines"
SETS = f"{COMPUTE}/availabilitySets"
NICS = f"{NETWORK}/networkInterfaces"
VNET = f"{NETWORK}/virtualNetworks/net"
SUBNET = f"{VNET}/subnets/inner"


class VmClient(ArmClient):
    version = "2026-04-01"

    @property
    def arm(self) -> Arm:
        """What handlers work with."""
        node = self.rig.node

        async def answer(_: ArmCall) -> Reply:
            raise NotImplementedError

        return Arm(
            control=make_control(
                node.engine, node.store, node.engine.views, node.clock, AzureListener()
            ),
            resources=ResourceStore(node.store),
            operations=Operations(node.store, node.clock),
            answer=answer,
        )

    async def begin(self, method: str, path: str) -> str:
        """A long-running operation; where to ask for it."""
        answer = await self.ask(method, path, status=202)
        assert answer.headers["retry-after"] == "1"
        return answer.headers["azure-asyncoperation"]

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
        answer = await self.http.get(
            url, params={"api-version": "2021-12-13"}, headers={"Metadata": "true"}
        )
        return answer.json()

    async def events(self, name: str) -> Any:
        return (await self.rig.document(name))["Events"]


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
