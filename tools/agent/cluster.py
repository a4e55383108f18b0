"""A small cluster: nodes, and pods that end some time after they were evicted."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

NAMESPACE = "default"
DAEMONS = "every-node"
"""The DaemonSet that has a pod on each node; a drain leaves those alone."""


class Guarded(Exception):
    """A disruption budget forbids to evict the pod."""


@dataclass(slots=True, kw_only=True)
class Pod:
    name: str
    node: str
    owner: str = "ReplicaSet"
    """The kind of what started it; empty if nothing would start it again."""
    is_guarded: bool = False
    evicted_at: datetime | None = None

    def as_object(self) -> dict[str, Any]:
        named = DAEMONS if self.owner == "DaemonSet" else "shop"
        owner = {"apiVersion": "apps/v1", "kind": self.owner, "name": named, "uid": named}
        metadata: dict[str, Any] = {"name": self.name, "namespace": NAMESPACE, "uid": self.name}
        metadata["ownerReferences"] = [{**owner, "controller": True}] if self.owner else []
        if self.evicted_at is not None:
            metadata["deletionTimestamp"] = self.evicted_at.strftime("%Y-%m-%dT%H:%M:%SZ")
        volumes = [{"name": "scratch", "emptyDir": {}}]
        spec = {"nodeName": self.node, "containers": [], "volumes": volumes}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": spec,
            "status": {"phase": "Running"},
        }


@dataclass(slots=True)
class Cluster:
    """Many threads use it, each within `with cluster.held()`."""

    cordoned: dict[str, bool] = field(default_factory=dict)
    """Whether new pods stay away, for every node."""
    cordons: list[tuple[str, bool]] = field(default_factory=list)
    """Every change of that, in order."""
    pods: dict[str, Pod] = field(default_factory=dict)
    gone_at: dict[str, datetime] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def held(self) -> Iterator[None]:
        with self._lock:
            yield

    def add(self, *pods: Pod) -> None:
        self.pods.update({each.name: each for each in pods})

    def on(self, node: str) -> list[Pod]:
        return [each for each in self.pods.values() if each.node == node]

    def cordon(self, node: str, is_cordoned: bool) -> None:
        self.cordoned[node] = is_cordoned
        self.cordons.append((node, is_cordoned))

    def look(self, name: str) -> Pod | None:
        """Returns the pod; one that was evicted is gone at the next look."""
        found = self.pods.get(name)
        if found is not None and found.evicted_at is not None:
            del self.pods[name]
            self.gone_at[name] = datetime.now(UTC)
        return found

    def evict(self, name: str) -> None:
        """Evicts the pod. Raises Guarded."""
        pod = self.pods[name]
        if pod.is_guarded:
            raise Guarded
        pod.evicted_at = datetime.now(UTC)
