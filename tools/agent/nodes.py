"""Nodes of the cluster are VMs of a fleet: one server, and an agent for each as in the manifest."""

import json
import os
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import yaml  # type: ignore[import-untyped]

from tests.support.processes import clean_environment, running, serving
from tools.agent.cluster_api import Right
from tools.debian_packages import program

NOTICE = "15s"
PATIENCE_S = 60.0
_MANIFEST = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes" / "daemonset.yaml"
_LISTEN = 'listen = "127.0.0.1:9169"'
_KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: here, cluster: {{server: "{url}"}}}}]
contexts: [{{name: here, context: {{cluster: here, user: ""}}}}]
current-context: here
"""


class Fleet:
    def __init__(self, metadata: str, control: str) -> None:
        self._metadata = metadata
        self._control = control

    def endpoint(self, name: str) -> str:
        return f"{self._metadata}/vm/{name}"

    def schedule(self, name: str, duration: str = "1s") -> str:
        """Schedules a Reboot and returns its id; a poll comes first, so that it is announced."""
        ask(f"{self.endpoint(name)}/metadata/scheduledevents?api-version=2020-07-01")
        wanted = {"type": "Reboot", "targets": [name], "duration": duration}
        return str(ask(f"{self._control}/api/v1/events", wanted)["id"])

    def event(self, id: str) -> Any:
        return ask(f"{self._control}/api/v1/events/{id}")


@contextmanager
def node_server(folder: Path, names: Sequence[str], *, notice: str = NOTICE) -> Iterator[Fleet]:
    file = folder / "fleet.toml"
    vms = [f'[[vm]]\nname = "{name}"\n' for name in names]
    file.write_text(f'test = true\nnotice = {{ Reboot = "{notice}" }}\n' + "".join(vms))
    with serving("--fleet", str(file)) as ready:
        yield Fleet(ready.metadata, ready.control)


class Agent:
    """A running agent, and what it has said so far."""

    def __init__(self, process: Popen[str], patience_s: float = PATIENCE_S) -> None:
        self._process = process
        self._patience_s = patience_s
        self.said = ""

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def wait_until_it_says(self, words: str) -> None:
        ending = threading.Timer(self._patience_s, self._process.kill)
        ending.start()
        assert self._process.stderr is not None
        try:
            for line in self._process.stderr:
                self.said += line
                if words in line:
                    return
        finally:
            ending.cancel()
        raise AssertionError(f"the agent did not say {words!r} in time: {self.said}")


@contextmanager
def agent(folder: Path, node: str, endpoint: str, cluster: str) -> Iterator[Agent]:
    """Runs an agent with the settings of the manifest and the kubectl of this machine."""
    home = folder / node
    home.mkdir()
    (home / "kubeconfig").write_text(_KUBECONFIG.format(url=cluster))
    settings = manifest()["ConfigMap"]["data"]["agent.toml"].replace("NODE_NAME", node)
    assert _LISTEN in settings
    ours = f'listen = ""\nstate = "{home}/agent.json"'
    (home / "agent.toml").write_text(settings.replace(_LISTEN, ours))
    environment = {
        **clean_environment(),
        "FAIRWARNING_METADATA_URL": endpoint,
        "HOME": str(home),
        "KUBECONFIG": str(home / "kubeconfig"),
        "PATH": f"{Path(program('kubectl')).parent}{os.pathsep}{os.environ['PATH']}",
    }
    config = str(home / "agent.toml")
    command = [sys.executable, "-m", "fairwarning", "agent", "--config", config]
    with running(command, stderr=PIPE, env=environment) as process:
        yield Agent(process)


def manifest() -> Mapping[str, Any]:
    """Returns the objects of the manifest by kind."""
    return {each["kind"]: each for each in yaml.safe_load_all(_MANIFEST.read_text())}


def granted() -> set[Right]:
    return {
        Right(verb, group, resource)
        for rule in manifest()["ClusterRole"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def ask(url: str, body: Mapping[str, Any] | None = None) -> Any:
    """Returns the JSON that a server answers to a GET, or to a POST if there is a body."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    headers = {"Metadata": "true", "Content-Type": "application/json"}
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, content, headers)  # noqa: S310
    with opener.open(request, timeout=10) as answer:
        return json.load(answer)
