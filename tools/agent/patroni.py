"""The agent hands the leader of a real PostgreSQL under Patroni over before its VM is rebooted.

Two VMs, db-0 and db-1, have a member each. A client writes all the time. db-0 is the leader; its
agent switches over and later back, as `switch_back` says. The agent is killed in the middle of the
switchover, and the member when the reboot begins.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE

from tests.support.processes import clean_environment, running
from tools.agent.nodes import Agent, Fleet, node_server
from tools.debian_packages import program
from tools.patroni_cluster import (
    MEMBERS,
    PASSWORD,
    USER,
    Member,
    PatroniCluster,
    Writer,
    patroni_cluster,
)

_NOTICE = "90s"
_DOWN = "20s"
"""How long the reboot of the leader lasts, so that its end does not race with what is looked at."""
_CONFIG = """
state = "{home}/agent.json"
listen = ""

[[rule]]
name = "database"

  [[rule.scheduled]]
  patroni = {{ url = "{url}", user = "{user}", password_file = "{password}", switch_back = {back} }}
  timeout = "60s"
"""


def check_patroni() -> list[str]:
    with (
        tempfile.TemporaryDirectory() as name,
        node_server(Path(name), MEMBERS, notice=_NOTICE) as fleet,
        patroni_cluster(Path(name)) as cluster,
    ):
        folder = Path(name)
        lines = [_check_config(folder, cluster)]
        with Writer(cluster) as writer:
            lines += _reboot_leader(folder, fleet, cluster, writer)
            lines += _reboot_replica(folder, fleet, cluster)
            lines += _no_candidate(folder, fleet, cluster)
        lost = writer.lost()
        assert not lost, f"rows were acknowledged and are lost: {lost}"
        lines.append(f"{len(writer.acknowledged)} rows were acknowledged, and none is lost")
    return [*lines, _versions()]


def _check_config(folder: Path, cluster: PatroniCluster) -> str:
    leader = cluster.members["db-0"]
    assert _warnings(_config(folder, leader)) == []
    _password(folder).write_text("wrong")
    (said,) = _warnings(_config(folder, leader))
    assert "refuses the credentials" in said, said
    _password(folder).write_text(PASSWORD)
    assert cluster.is_whole("db-0"), "check-config has changed the cluster"
    return "check-config names a wrong password, and changes nothing"


def _reboot_leader(
    folder: Path, fleet: Fleet, cluster: PatroniCluster, writer: Writer
) -> Iterator[str]:
    old, new = (cluster.members[name] for name in MEMBERS)
    with _agent(folder, fleet, old, is_back=True) as first:
        first.wait_until_it_says("watching")
        id = fleet.schedule(old.name, _DOWN)
        first.wait_until_it_says("asking Patroni to switch over")
        first.kill()
    with _agent(folder, fleet, old, is_back=True) as second:
        second.wait_until_it_says("is started")
        assert cluster.leader() == new.name, "approved while it was the leader"
        assert cluster.is_whole(new.name), "approved before the old leader followed the new one"
        assert fleet.event(id)["approvals"], second.said
        yield "the agent, killed in the middle and started again, switched over, then approved"
        old.pull_the_plug()
        written = len(writer.acknowledged)
        cluster.wait(
            "writes go on at db-1",
            lambda: writer.went_on(new.port) and len(writer.acknowledged) > written + 20,
        )
        yield "db-0 lost its power, and writes went on at db-1"
        old.start()
        second.wait_until_it_says("all is done and undone")
    cluster.wait("db-0 is the leader again", lambda: cluster.is_whole("db-0"))
    yield "after the event it was made the leader again, as `switch_back` says"


def _reboot_replica(folder: Path, fleet: Fleet, cluster: PatroniCluster) -> Iterator[str]:
    before = cluster.shown()["db-0"]["timeline"]
    with _agent(folder, fleet, cluster.members["db-1"]) as agent:
        agent.wait_until_it_says("watching")
        id = fleet.schedule("db-1")
        agent.wait_until_it_says("all is done and undone")
    assert "nothing to switch over" in agent.said, agent.said
    assert fleet.event(id)["approvals"], agent.said
    assert cluster.shown()["db-0"]["timeline"] == before, "it was switched over for a replica"
    yield "a replica is approved at once, and nothing is switched over"


def _no_candidate(folder: Path, fleet: Fleet, cluster: PatroniCluster) -> Iterator[str]:
    cluster.members["db-1"].stop()
    with _agent(folder, fleet, cluster.members["db-0"], is_back=True) as agent:
        agent.wait_until_it_says("watching")
        id = fleet.schedule("db-0")
        agent.wait_until_it_says("not approved, because patroni switchover did not work")
    reason = agent.said.rstrip().rpartition("did not work: ")[2]
    assert "not possible" in reason or "nobody can take over" in reason, reason
    assert not fleet.event(id)["approvals"], "approved although nobody could take over"
    assert cluster.leader() == "db-0"
    yield f"no healthy candidate: not approved, because {reason}"


@contextmanager
def _agent(folder: Path, fleet: Fleet, member: Member, *, is_back: bool = False) -> Iterator[Agent]:
    config = str(_config(folder, member, is_back=is_back))
    command = [sys.executable, "-m", "fairwarning", "agent", "--config", config]
    endpoint = {"FAIRWARNING_METADATA_URL": fleet.endpoint(member.name)}
    with running(command, stderr=PIPE, env={**clean_environment(), **endpoint}) as process:
        yield Agent(process)


def _config(folder: Path, member: Member, *, is_back: bool = False) -> Path:
    home = folder / f"agent-{member.name}"
    home.mkdir(exist_ok=True)
    if not _password(folder).exists():
        _password(folder).write_text(PASSWORD)
    text = _CONFIG.format(
        home=home, url=member.url, user=USER, password=_password(folder), back=str(is_back).lower()
    )
    (home / "agent.toml").write_text(text)
    return home / "agent.toml"


def _password(folder: Path) -> Path:
    return folder / "password"


def _warnings(config: Path) -> list[str]:
    command = [sys.executable, "-m", "fairwarning", "agent", "check-config", str(config), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    found: list[str] = json.loads(done.stdout)["warnings"]
    return found


def _versions() -> str:
    def first_line(*command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
        return done.stdout.splitlines()[0]

    names = ("patroni", "etcd")
    return ", ".join(first_line(program(name), "--version") for name in names)
