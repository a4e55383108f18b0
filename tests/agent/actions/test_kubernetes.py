"""Nodes, with a stand-in for kubectl that keeps one node in a file."""

import json
from pathlib import Path

import pytest

from fairwarning.agent.actions import kubernetes
from fairwarning.agent.actions.base import ActionFailed
from fairwarning.agent.actions.kubernetes import KubernetesHandler, drain_arguments, drain_s
from fairwarning.agent.config.model import Action, Kubernetes, Phase
from tests.agent.actions.contexts import context, program

STAND_IN = """
words = sys.argv[1:]
with (here / 'calls').open('a') as calls:
    calls.write(json.dumps(words) + chr(10))
file = here / 'node'
if (here / 'broken').exists() and 'drain' in words:
    print('would violate the disruption budget', file=sys.stderr)
    sys.exit('error: unable to drain node "web-1": global timeout reached: 58s')
node = json.loads(file.read_text()) if file.exists() else None
if words[-1] != 'web-1' or node is None:
    sys.exit(0 if '--ignore-not-found' in words else 'Error from server (NotFound)')
if 'get' in words:
    print('web-1 ' + ('true' if node['cordoned'] else ''), end='')
verb = next(word for word in words if not word.startswith('-'))
if verb in ('cordon', 'uncordon'):
    file.write_text(json.dumps({'cordoned': verb == 'cordon'}))
"""


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubectl = str(program(folder, "kubectl", STAND_IN))
        self.set_cordoned(False)

    def set_cordoned(self, is_cordoned: bool) -> None:
        (self.folder / "node").write_text(json.dumps({"cordoned": is_cordoned}))

    def is_cordoned(self) -> bool:
        return bool(json.loads((self.folder / "node").read_text())["cordoned"])

    def calls(self, verb: str) -> list[list[str]]:
        calls = [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]
        return [call for call in calls if verb in call]

    def action(self, **settings: object) -> Action:
        made = Kubernetes(kubectl=self.kubectl, **settings)  # type: ignore[arg-type]
        return Action(settings=made)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Where nothing takes any time."""
    monkeypatch.setattr(kubernetes, "monotonic", lambda: 0.0)
    return Cluster(tmp_path)


async def test_the_node_of_this_vm_is_drained_and_uncordoned_afterwards(cluster: Cluster) -> None:
    kept: dict[str, str] = {}
    action = cluster.action(kubeconfig="/k", context="north")
    await KubernetesHandler().do(action, context(kept))
    assert cluster.is_cordoned()
    await KubernetesHandler().do(action, context(kept))
    await KubernetesHandler().undo(action, context(kept))
    assert not cluster.is_cordoned()
    assert cluster.calls("drain")[0] == ["--kubeconfig=/k", "--context=north", "drain",
                                         "--ignore-daemonsets", "--timeout=58s", "--",
                                         "web-1"]  # fmt: skip


async def test_a_drain_has_the_time_that_is_left_when_it_begins(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes, "monotonic", iter([0.0, 5.0]).__next__)
    await KubernetesHandler().do(cluster.action(), context())
    assert "--timeout=53s" in cluster.calls("drain")[0]


async def test_a_node_that_somebody_had_cordoned_stays_so(cluster: Cluster) -> None:
    cluster.set_cordoned(True)
    kept: dict[str, str] = {}
    await KubernetesHandler().do(cluster.action(), context(kept))
    await KubernetesHandler().undo(cluster.action(), context(kept))
    assert cluster.is_cordoned()


async def test_a_drain_that_fails_says_why_and_is_undone(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    kept: dict[str, str] = {}
    (cluster.folder / "broken").touch()
    with pytest.raises(ActionFailed, match="code 1: error: unable to drain node"):
        await KubernetesHandler().do(cluster.action(), context(kept))
    assert "would violate the disruption budget" in caplog.text
    assert cluster.is_cordoned()
    await KubernetesHandler().undo(cluster.action(), context(kept))
    assert not cluster.is_cordoned()


async def test_without_drain_it_only_cordons(cluster: Cluster) -> None:
    await KubernetesHandler().do(cluster.action(drain=False), context())
    assert cluster.is_cordoned()
    assert cluster.calls("drain") == []


async def test_undo_of_what_was_never_done_asks_nothing(cluster: Cluster) -> None:
    cluster.set_cordoned(True)
    await KubernetesHandler().undo(cluster.action(), context())
    assert cluster.is_cordoned()
    assert not (cluster.folder / "calls").exists()


async def test_a_node_that_is_not_there_is_named_and_a_lost_one_needs_no_undo(
    cluster: Cluster,
) -> None:
    with pytest.raises(ActionFailed, match="no node wbe-1; set `node`"):
        await KubernetesHandler().do(cluster.action(node="wbe-1"), context())
    kept: dict[str, str] = {}
    await KubernetesHandler().do(cluster.action(), context(kept))
    (cluster.folder / "node").unlink()
    await KubernetesHandler().undo(cluster.action(), context(kept))
    assert cluster.calls("uncordon") == []


def test_every_option_of_a_drain_is_passed_on() -> None:
    settings = Kubernetes(
        ignore_daemonsets=False,
        delete_emptydir_data=True,
        force=True,
        grace_period_s=0,
        pod_selector="app!=keep",
    )
    assert drain_arguments(settings, "n", 0.5) == [
        "drain",
        "--delete-emptydir-data",
        "--force",
        "--timeout=1s",
        "--grace-period=0",
        "--pod-selector=app!=keep",
        "--",
        "n",
    ]


def test_only_before_the_event_is_a_drain_bound_by_it() -> None:
    assert drain_s(300, context(time_left_s=60)) == 60
    assert drain_s(30, context(time_left_s=60)) == 30
    assert drain_s(300, context(time_left_s=0, phase=Phase.STARTED)) == 300
