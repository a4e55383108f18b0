"""The cluster's API, as far as kubectl asks for it to cordon, drain and uncordon.

Its answers are those that a real API server (1.20) gave, less the fields that nobody reads. It
grants what a ClusterRole says and nothing else, and knows which of its rights were used.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from tools.agent.cluster import DAEMONS, NAMESPACE, Cluster, Guarded
from tools.agent.discovery import discovered

_VERBS = {"GET": "get", "PATCH": "patch", "POST": "create", "DELETE": "delete"}


class Right(NamedTuple):
    verb: str
    group: str
    resource: str


class Ask(NamedTuple):
    right: Right
    name: str
    node: str = ""
    """The node of the pods that are wanted."""


class Refused(Exception):
    def __init__(self, code: int, reason: str, message: str, **details: object) -> None:
        self.code = code
        self.body = {
            **_object("Status"),
            "status": "Failure",
            "message": message,
            "reason": reason,
            "details": details,
            "code": code,
        }


class ClusterApi:
    def __init__(self, cluster: Cluster, granted: Iterable[Right]) -> None:
        self._cluster = cluster
        self._granted = frozenset(granted)
        self.used: set[Right] = set()

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, Mapping[str, Any]]:
        url = urlsplit(target)
        if (found := discovered(url.path)) is not None:
            return 200, found
        ask = read(method, url.path, parse_qs(url.query))
        with self._cluster.held():
            try:
                if ask.right not in self._granted:
                    raise _forbidden(ask.right)
                self.used.add(ask.right)
                return self._obey(ask, body)
            except Refused as refusal:
                return refusal.code, refusal.body

    def _obey(self, ask: Ask, body: bytes) -> tuple[int, Mapping[str, Any]]:
        match ask.right.verb, ask.right.resource:
            case ("get" | "patch", "nodes"):
                return 200, self._node(ask.name, json.loads(body or b"{}"))
            case ("list", "pods"):
                listed = [each.as_object() for each in self._cluster.on(ask.node)]
                return 200, {**_object("PodList"), "items": listed}
            case ("get", "pods") if (pod := self._cluster.look(ask.name)) is not None:
                return 200, pod.as_object()
            case ("create", "pods/eviction") if ask.name in self._cluster.pods:
                return 201, self._evict(ask.name)
            case ("get", "daemonsets") if ask.name == DAEMONS:
                metadata = {"name": DAEMONS, "namespace": NAMESPACE}
                return 200, {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata}
        raise _not_found(ask)

    def _node(self, name: str, patch: Mapping[str, Any]) -> Mapping[str, Any]:
        if name not in self._cluster.cordoned:
            raise _not_found(Ask(Right("get", "", "nodes"), name))
        if "spec" in patch:
            self._cluster.cordon(name, bool(patch["spec"]["unschedulable"]))
        spec = {"unschedulable": True} if self._cluster.cordoned[name] else {}
        return {**_object("Node"), "metadata": {"name": name}, "spec": spec}

    def _evict(self, name: str) -> Mapping[str, Any]:
        try:
            self._cluster.evict(name)
        except Guarded:
            said = "Cannot evict pod as it would violate the pod's disruption budget."
            cause = {"reason": "DisruptionBudget", "message": "needs 2 healthy pods and has 2"}
            raise Refused(429, "TooManyRequests", said, causes=[cause]) from None
        return {**_object("Status"), "status": "Success", "code": 201}


def read(method: str, path: str, query: Mapping[str, list[str]]) -> Ask:
    """Reads a path: `/api/v1/namespaces/default/pods/a/eviction` is about the pod a."""
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    if rest[:1] == ["namespaces"]:
        rest = rest[2:]
    resource = "/".join([rest[0], *rest[2:]])
    name = rest[1] if len(rest) > 1 else ""
    verb = _VERBS[method] if name or method != "GET" else "list"
    selected = query.get("fieldSelector", [""])[0]
    return Ask(Right(verb, group, resource), name, selected.removeprefix("spec.nodeName="))


def _object(kind: str) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": "v1", "metadata": {}}


def _forbidden(right: Right) -> Refused:
    group = f'in API group "{right.group}" at the cluster scope'
    said = f'{right.resource} is forbidden: cannot {right.verb} resource "{right.resource}" {group}'
    return Refused(403, "Forbidden", said, kind=right.resource)


def _not_found(ask: Ask) -> Refused:
    kind = ask.right.resource
    return Refused(404, "NotFound", f'{kind} "{ask.name}" not found', name=ask.name, kind=kind)
