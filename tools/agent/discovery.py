"""The discovery part of the cluster's API, which kubectl asks first and anybody may."""

from collections.abc import Mapping
from typing import Any

_RESOURCES = {
    "/api/v1": [
        ("nodes", "Node", False),
        ("pods", "Pod", True),
        ("pods/eviction", "Eviction", True),
    ],
    "/apis/apps/v1": [("daemonsets", "DaemonSet", True)],
    "/apis/policy/v1": [("poddisruptionbudgets", "PodDisruptionBudget", True)],
}


def discovered(path: str) -> Mapping[str, Any] | None:
    """Returns the answer to a discovery request; None for any other."""
    if path == "/version":
        return {"major": "1", "minor": "32", "gitVersion": "v1.32.0"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        groups = [_group(each) for each in ("apps", "policy")]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    if path not in _RESOURCES:
        return None
    resources = [
        {
            "name": name,
            "singularName": kind.lower(),
            "namespaced": is_namespaced,
            "kind": kind,
            "verbs": ["create"] if "/" in name else ["get", "list", "patch"],
            **({"group": "policy", "version": "v1"} if kind == "Eviction" else {}),
        }
        for name, kind, is_namespaced in _RESOURCES[path]
    ]
    version = path.removeprefix("/apis/").removeprefix("/api/")
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": version,
        "resources": resources,
    }


def _group(name: str) -> Mapping[str, Any]:
    version = {"groupVersion": f"{name}/v1", "version": "v1"}
    return {"name": name, "versions": [version], "preferredVersion": version}
