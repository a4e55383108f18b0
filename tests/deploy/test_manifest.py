"""The Kubernetes manifest says what the agent relies on. No cluster is asked."""

from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from fairwarning.agent.config.reader import read_config

FILE = Path(__file__).parents[2] / "deploy" / "kubernetes" / "daemonset.yaml"
NAME = "fairwarning-agent"


@pytest.fixture(scope="module")
def objects() -> dict[str, Any]:
    return {each["kind"]: each for each in yaml.safe_load_all(FILE.read_text())}


@pytest.fixture(scope="module")
def pod(objects: dict[str, Any]) -> Any:
    return objects["DaemonSet"]["spec"]["template"]["spec"]


def test_the_agent_may_cordon_and_drain_and_nothing_else(objects: dict[str, Any]) -> None:
    granted = {
        (group, resource): set(rule["verbs"])
        for rule in objects["ClusterRole"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert granted == {
        ("", "nodes"): {"get", "patch"},
        ("", "pods"): {"get", "list"},
        ("apps", "daemonsets"): {"get"},
        ("", "pods/eviction"): {"create"},
    }


def test_the_rights_are_given_to_the_account_that_the_pod_uses(
    objects: dict[str, Any], pod: Any
) -> None:
    binding = objects["ClusterRoleBinding"]
    account = objects["ServiceAccount"]["metadata"]
    assert binding["roleRef"]["name"] == objects["ClusterRole"]["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", **account}]
    assert pod["serviceAccountName"] == account["name"]
    spaces = {each["metadata"].get("namespace") for each in objects.values()} - {None}
    assert spaces == {objects["Namespace"]["metadata"]["name"]}


def test_the_pod_is_on_every_node_and_has_the_nodes_address(
    objects: dict[str, Any], pod: Any
) -> None:
    assert pod["hostNetwork"] is True
    assert pod["tolerations"] == [{"operator": "Exists"}]
    labels = objects["DaemonSet"]["spec"]["template"]["metadata"]["labels"]
    assert objects["DaemonSet"]["spec"]["selector"]["matchLabels"] == labels


def test_the_state_outlives_the_node_and_the_agent_is_not_root(pod: Any) -> None:
    (agent,) = pod["containers"]
    volumes = {each["name"]: each for each in pod["volumes"]}
    mounts = {each["mountPath"]: each["name"] for each in agent["volumeMounts"]}
    assert volumes[mounts["/var/lib/fairwarning"]]["hostPath"]["path"] == "/var/lib/fairwarning"
    assert agent["securityContext"]["runAsNonRoot"] is True
    assert agent["securityContext"]["readOnlyRootFilesystem"] is True
    assert set(mounts.values()) <= set(volumes)


def test_the_settings_are_a_config_that_drains_this_node(objects: dict[str, Any], pod: Any) -> None:
    text = objects["ConfigMap"]["data"]["agent.toml"]
    config = read_config(text)
    assert config.listen is not None
    (probe,) = {
        (each["httpGet"]["host"], each["httpGet"]["port"])
        for container in pod["containers"]
        for each in (container["livenessProbe"], container["readinessProbe"])
    }
    assert probe == config.listen
    assert 'node = "NODE_NAME"' in text
    assert "NODE_NAME" in pod["initContainers"][0]["args"][0]
    assert config.state.startswith("/var/lib/fairwarning/")
