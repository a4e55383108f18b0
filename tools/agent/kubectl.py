"""The agent drains nodes through the real kubectl, with the settings and rights of the manifest.

Theory of operation. Each case has a node of its own, which is also a VM of a fleet, and all are
played at once: a server, an agent for each node, and a cluster whose API refuses whatever the
manifest's ClusterRole does not grant. What counts is what kubectl asks of it.
"""

import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tools.agent.cluster import Cluster, Pod
from tools.agent.cluster_api import ClusterApi
from tools.agent.nodes import Fleet, agent, granted, node_server
from tools.debian_packages import program
from tools.json_service import json_service


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    node: str
    what: str
    pods: tuple[Pod, ...]
    complaint: str = ""
    """What the agent's log must say, if the drain must fail."""
    was_cordoned: bool = False


def _pods(node: str, *, owner: str = "ReplicaSet", is_guarded: bool = False) -> tuple[Pod, ...]:
    return (
        Pod(name=f"{node}-1", node=node, owner=owner, is_guarded=is_guarded),
        Pod(name=f"{node}-2", node=node),
    )


CASES = (
    Case(
        node="plain",
        what="cordoned, emptied, then approved, and uncordoned after the event",
        pods=_pods("plain"),
    ),
    Case(
        node="set-aside",
        what="one that somebody had cordoned is emptied and approved, and stays cordoned",
        pods=_pods("set-aside"),
        was_cordoned=True,
    ),
    Case(
        node="guarded",
        what="a disruption budget holds a pod: said so, not approved, and uncordoned afterwards",
        pods=_pods("guarded", is_guarded=True),
        complaint="would violate the pod's disruption budget",
    ),
    Case(
        node="bare",
        what="a pod that nothing would start again: said so, nothing evicted, not approved",
        pods=_pods("bare", owner=""),
        complaint="(use --force to override): default/bare-1",
    ),
)


def check_kubectl() -> list[str]:
    cluster = Cluster()
    for case in CASES:
        cluster.cordoned[case.node] = case.was_cordoned
        daemon = Pod(name=f"{case.node}-daemon", node=case.node, owner="DaemonSet")
        cluster.add(daemon, *case.pods)
    names = [each.node for each in CASES]
    api = ClusterApi(cluster, granted())
    with (
        tempfile.TemporaryDirectory() as folder,
        json_service(api.answer) as url,
        node_server(Path(folder), names) as fleet,
        ThreadPoolExecutor(len(CASES)) as pool,
    ):
        played = [pool.submit(_play, each, fleet, cluster, url, folder) for each in CASES]
        lines = [each.result() for each in played]
    unused = granted() - api.used
    assert not unused, f"the manifest grants what kubectl never asks for: {unused}"
    return [*lines, f"the manifest's rights are enough, and each is used; {_version()}"]


def _play(case: Case, fleet: Fleet, cluster: Cluster, url: str, folder: str) -> str:
    with agent(Path(folder), case.node, fleet.endpoint(case.node), url) as running:
        running.wait_until_it_says("watching")
        id = fleet.schedule(case.node)
        running.wait_until_it_says("all is done and undone")
    event = fleet.event(id)
    assert event["phase"] == "completed", f"{case.node}: {event}"
    approved = [datetime.fromisoformat(each["at"]) for each in event["approvals"]]
    with cluster.held():
        left = {each.name for each in cluster.on(case.node)}
        said = f"{case.node}: {left} are left, approved {approved}, and the agent:\n{running.said}"
        _judge(case, cluster, left, approved, said)
    assert case.complaint in running.said, said
    return f"{case.node}: {case.what}"


def _judge(
    case: Case, cluster: Cluster, left: set[str], approved: list[datetime], said: str
) -> None:
    names = {each.name for each in case.pods}
    cordons = [is_cordoned for node, is_cordoned in cluster.cordons if node == case.node]
    assert cordons == ([] if case.was_cordoned else [True, False]), f"cordoned {cordons}; {said}"
    assert f"{case.node}-daemon" in left, said
    if case.complaint:
        assert not approved, said
        assert f"{case.node}-1" in left, said
        return
    assert len(approved) == 1, said
    assert not names & left, said
    assert all(cluster.gone_at[name] <= approved[0] for name in names), said


def _version() -> str:
    asking = [program("kubectl"), "version", "--client", "--output=yaml"]
    done = subprocess.run(asking, capture_output=True, text=True, check=True)  # noqa: S603
    found = next(line for line in done.stdout.splitlines() if "gitVersion:" in line)
    return f"kubectl {found.split()[1]}"
