"""What a sample is played with: a fresh server, two VMs, and an empty folder."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.processes import clean_environment
from tests.support.vms import Rig, Vm
from tools.seeds.server import DB, VMS, WEB, Server

# curl reads this by itself, so that the line as printed also tells the status.
_CURL_SETTINGS = r"""
silent
show-error
max-time = 20
write-out = "%{stderr}%{http_code}"
"""


class Failed(Exception):
    """The sample did not do what its page says."""


class NotRunnable(Exception):
    """The sample cannot run as printed."""


def expect(holds: bool, observed: str) -> None:
    if not holds:
        raise Failed(observed)


@dataclass(frozen=True, slots=True)
class Answer:
    status: str
    body: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """Returns the events of a document; anything else fails the sample."""
        expect(self.status == "200", f"{self.status} {self.body}")
        try:
            found: list[dict[str, Any]] = json.loads(self.body)["Events"]
        except (ValueError, KeyError):
            raise Failed(f"not a document: {self.body!r}") from None
        return found


@dataclass(frozen=True, slots=True)
class SampleRun:
    rig: Rig
    server: Server
    folder: Path
    environment: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        Path(self.folder, ".curlrc").write_text(_CURL_SETTINGS)
        home = {"HOME": str(self.folder), "CURL_HOME": str(self.folder)}
        object.__setattr__(self, "environment", clean_environment() | home)

    @property
    def web(self) -> Vm:
        return self.rig.vms[WEB]

    @property
    def db(self) -> Vm:
        return self.rig.vms[DB]

    def shell(self, vm: Vm, line: str) -> Answer:
        """Runs a line with one curl in this VM, and returns the answer."""
        done = vm.run(["sh", "-c", line], cwd=self.folder, env=self.environment)
        expect(done.returncode == 0, f"curl ended with {done.returncode}: {done.stderr}")
        return Answer(done.stderr, done.stdout)

    def activate(self, endpoint: str) -> None:
        """Makes the first call of each scope, after which events are announced to it."""
        for name in VMS:
            answer = self.shell(self.rig.vms[name], f"curl -H Metadata:true '{endpoint}'")
            expect(answer.events == [], f"{name} began with {answer.events}")
