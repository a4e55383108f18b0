"""A node on a virtual clock over TLS, and Azure's own SDK as its client.

The SDK is synchronous, so the node has a thread of its own. Where a poller would sleep, the
virtual clock moves instead, but only while a test lets time flow: before that the test can look
at what is pending for as long as it likes.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import httpx
from azure.core.pipeline.transport import RequestsTransport
from azure.core.polling import LROPoller
from azure.identity import ClientSecretCredential
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.maintenance import MaintenanceManagementClient
from azure.mgmt.resource.resources import ResourceManagementClient

from fairwarning.core.resources import DEFAULT_SUBSCRIPTION
from fairwarning.node import Node, NodeSettings
from tests.support.patience import HANG_S

LOCATION = "westeurope"
GROUP = "myResourceGroup"
STEP = "1m"
"""How far the clock moves where the SDK sleeps a second."""
_Client = TypeVar("_Client")
_Result = TypeVar("_Result")


@contextmanager
def node_in_thread(folder: Path) -> Iterator[Node]:
    """A fresh node with an empty fleet, in a thread of its own until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="node")
    thread.start()
    settings = NodeSettings(
        store_url="memory:",
        is_clock_virtual=True,
        makes_starter_fleet=False,
        azure=("127.0.0.1", 0),
        azure_folder=folder,
    )
    node = Node(settings)
    try:
        asyncio.run_coroutine_threadsafe(node.start(), loop).result(HANG_S)
        yield node
    finally:
        asyncio.run_coroutine_threadsafe(node.stop(), loop).result(HANG_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(HANG_S)
        loop.close()


class Time:
    """The node's clock, which moves only while a test lets it."""

    def __init__(self, api: httpx.Client) -> None:
        self._api = api
        self._flows = threading.Event()

    def advance(self, by: str = STEP) -> None:
        self._api.post("/clock/advance", json={"by": by}).raise_for_status()

    def sleep(self) -> None:
        """What a sleeping client does."""
        assert self._flows.wait(HANG_S), "a client sleeps, and the test lets no time pass"
        self.advance()

    @contextmanager
    def flowing(self) -> Iterator[None]:
        self._flows.set()
        try:
            yield
        finally:
            self._flows.clear()


class VirtualTransport(RequestsTransport):  # type: ignore[misc]
    """The SDK's own, except that it sleeps on the virtual clock."""

    def __init__(self, time: Time, authority: str) -> None:
        super().__init__(connection_verify=authority)
        self._time = time

    def sleep(self, duration: float) -> None:
        self._time.sleep()

    def close(self) -> None:
        """Connections too: those of a pool stay open as long as a caught error knows of it."""
        if self.session is not None:
            pools = self.session.get_adapter("https://").poolmanager.pools
            for key in pools.keys():  # noqa: SIM118  it is no dictionary and cannot be iterated
                pools[key].close()
        super().close()


class SdkClients:
    """The SDK's clients, logged in, and the two other views of the same fleet."""

    def __init__(self, node: Node, folder: Path, exits: ExitStack) -> None:
        self.subscription = DEFAULT_SUBSCRIPTION
        self.url = node.azure_url.replace("127.0.0.1", "localhost")
        self._exits = exits
        self.api = exits.enter_context(
            httpx.Client(
                base_url=f"{node.control_url}/api/v1",
                timeout=HANG_S,
                verify=False,
                trust_env=False,
            )
        )
        self.vm = exits.enter_context(
            httpx.Client(
                base_url=node.metadata_urls[0],
                headers={"Metadata": "true"},
                timeout=HANG_S,
                verify=False,
                trust_env=False,
            )
        )
        authority = folder / "ca.pem"
        authority.write_text(self.api.get("/azure").raise_for_status().json()["ca"])
        self.authority = str(authority)
        self.time = Time(self.api)
        self.secret = self.token("operator")

    @cached_property
    def compute(self) -> ComputeManagementClient:
        return self.client(ComputeManagementClient)

    @cached_property
    def resources(self) -> ResourceManagementClient:
        return self.client(ResourceManagementClient)

    @cached_property
    def maintenance(self) -> MaintenanceManagementClient:
        return self.client(MaintenanceManagementClient)

    @cached_property
    def _credential(self) -> ClientSecretCredential:
        return self.credential(self.secret)

    def token(self, role: str) -> str:
        """The secret of a new one."""
        made = self.api.post("/tokens", json={"name": f"sdk-{role}", "role": role})
        secret = made.raise_for_status().json()["secret"]
        assert isinstance(secret, str)
        return secret

    def credential(self, secret: str) -> ClientSecretCredential:
        return self._exits.enter_context(
            ClientSecretCredential(
                "adfs",
                "fairwarning",
                secret,
                authority=self.url,
                transport=VirtualTransport(self.time, self.authority),
                retry_total=0,
            )
        )

    def client(
        self,
        make: type[_Client],
        subscription: str = DEFAULT_SUBSCRIPTION,
        secret: str = "",
        **more: Any,
    ) -> _Client:
        """As anybody would make it for a cloud of their own, on the virtual clock."""
        said: dict[str, Any] = {
            "credential": self.credential(secret) if secret else self._credential,
            "subscription_id": subscription,
            "base_url": self.url,
            "credential_scopes": [f"{self.url}/.default"],
            "transport": VirtualTransport(self.time, self.authority),
            # An error must be seen as it is, the first time.
            "retry_total": 0,
            **more,
        }
        made = make(**said)
        self._exits.callback(made.close)  # type: ignore[attr-defined]
        return made

    def finish(self, poller: LROPoller[_Result]) -> _Result:
        """Let time pass until the operation is over."""
        with self.time.flowing():
            result = poller.result(HANG_S)
        assert poller.done()
        return result

    def events(self, **query: str) -> list[dict[str, Any]]:
        """As the operator API shows them, the newest first."""
        found = self.api.get("/events", params=query).raise_for_status().json()["events"]
        assert isinstance(found, list)
        return found

    def instances(self) -> dict[str, dict[str, Any]]:
        """The whole fleet by name, as the operator API shows it."""
        scopes = self.api.get("/fleet").raise_for_status().json()["scopes"]
        return {each["name"]: each for scope in scopes for each in scope["instances"]}

    def declare(self, fleet: dict[str, Any]) -> None:
        """What an operator adds, in the form of a fleet file."""
        self.api.post("/fleet", json=fleet).raise_for_status()

    def document(self, name: str, version: str = "2020-07-01") -> list[dict[str, Any]]:
        """The events that the instance sees. The first look makes its scope an active one."""
        path = f"/vm/{name}/metadata/scheduledevents"
        found = self.vm.get(path, params={"api-version": version}).raise_for_status().json()
        events = found["Events"]
        assert isinstance(events, list)
        return events

    def approve(self, name: str, event_id: str) -> None:
        """From inside, as the instance does it."""
        path = f"/vm/{name}/metadata/scheduledevents"
        body = {"StartRequests": [{"EventId": event_id}]}
        self.vm.post(path, params={"api-version": "2020-07-01"}, json=body).raise_for_status()


def minutes_between(one: str, other: str) -> float:
    return (datetime.fromisoformat(other) - datetime.fromisoformat(one)).total_seconds() / 60


@contextmanager
def running_sdk(folder: Path) -> Iterator[SdkClients]:
    """`folder` keeps the certificate, so that a further node need not make one."""
    with node_in_thread(folder) as node, ExitStack() as exits:
        yield SdkClients(node, folder, exits)
