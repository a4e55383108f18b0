"""Starts servers as processes, and looks at them from outside."""

import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.processes import clean_environment, running

PATIENCE_S = 60.0
"""How long to wait for what takes a second, on a machine that may be busy."""
PROGRAM = [sys.executable, "-m", "fairwarning"]
_POLL = "/metadata/scheduledevents?api-version=2020-07-01"
INSTANCES = 40
"""Enough for all changes of a check, because a second Freeze of an instance is refused."""
_FLEET = "test = true\n" + "".join(f'[[vm]]\nname = "vm-{n}"\n' for n in range(INSTANCES))


class ServedNode:
    def __init__(self, ready: Mapping[str, Any], log: Path) -> None:
        self._metadata = str(ready["metadata"][0])
        self.control = str(ready["control"])
        self.log = log
        self._http = httpx.Client(trust_env=False, timeout=PATIENCE_S)

    def text(self, path: str) -> str:
        return self._http.get(self.control + path).text

    def metric(self, name: str) -> float:
        lines = (line.split() for line in self.text("/metrics").splitlines())
        return next(float(words[1]) for words in lines if words[0] == name)

    def schedule(self, instance: str) -> str | None:
        """Schedules a Freeze and returns its id, or None while the store is down."""
        wanted = {"type": "Freeze", "targets": [instance], "duration": "1h"}
        answer = self._http.post(f"{self.control}/api/v1/events", json=wanted)
        if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
            return None
        assert answer.is_success, answer.text
        return str(answer.json()["id"])

    def event_ids(self, instance: str) -> list[str]:
        headers = {"Metadata": "true"}
        answer = self._http.get(f"{self._metadata}/vm/{instance}{_POLL}", headers=headers)
        return [str(event["EventId"]) for event in answer.json()["Events"]]


@contextmanager
def served(folder: Path, name: str, *options: str, **environment: str) -> Iterator[ServedNode]:
    """Runs a server until the block ends, with a fleet of INSTANCES VMs."""
    fleet, log = folder / "fleet.toml", folder / f"{name}.log"
    fleet.write_text(_FLEET)
    command = [*PROGRAM, "serve", "--json", "--no-azure", "--fleet", str(fleet)]
    listeners = ["--metadata", "127.0.0.1:0", "--control", "127.0.0.1:0"]
    with (
        log.open("w") as errors,
        running(
            [*command, *listeners, *options],
            stdout=subprocess.PIPE,
            stderr=errors,
            env=clean_environment() | environment,
        ) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, f"the server {name} did not start: {log.read_text().strip()}"
        yield ServedNode(json.loads(line), log)


def refusal(*options: str, **environment: str) -> str:
    """Returns the message of a server that cannot start. It must be one line, with exit code 1."""
    done = subprocess.run(  # noqa: S603
        [*PROGRAM, "serve", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        env=clean_environment() | environment,
    )
    said = done.stderr.strip()
    assert done.returncode == 1, f"exit code {done.returncode}: {said}"
    assert len(said.splitlines()) == 1, said
    return said


def visible_s(writer: ServedNode, reader: ServedNode, numbers: range) -> float:
    """Returns the median time from the answer to one server until another one shows the event."""
    return statistics.median(_visible_s(writer, reader, f"vm-{number}") for number in numbers)


def _visible_s(writer: ServedNode, reader: ServedNode, instance: str) -> float:
    reader.event_ids(instance)
    id = writer.schedule(instance)
    assert id is not None, f"the store is down: {writer.log.read_text()}"
    return wait_until(lambda: id in reader.event_ids(instance), f"{instance} shows its event")


def wait_until(condition: Callable[[], Any], what: str) -> float:
    """Waits until the condition is true, and returns how many seconds that took."""
    began_s = time.monotonic()
    while not condition():
        assert time.monotonic() - began_s < PATIENCE_S, f"it never happened that {what}"
        time.sleep(0.005)
    return time.monotonic() - began_s


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
