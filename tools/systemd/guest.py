"""Runs commands in the machine through QEMU's guest agent, and asks systemd about units."""

import base64
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.systemd.json_lines import Talk

PATIENCE_S = 600.0
"""How long to wait, because an emulated machine is slow and its host may be busy."""
_LOOK_EVERY_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    code: int
    output: str
    errors: str


class Guest:
    def __init__(self, path: Path) -> None:
        self._talk = Talk(path)
        self._syncs = 0

    def close(self) -> None:
        self._talk.close()

    def greet(self) -> None:
        """Connects again after a boot, because earlier requests get no answer any more."""
        self._syncs += 1
        self._talk.say("guest-sync", {"id": self._syncs})
        while self._talk.hear(time.monotonic() + PATIENCE_S).get("return") != self._syncs:
            pass

    def begin(self, command: str) -> int:
        """Starts a shell command; `look` returns its result."""
        arguments = {"path": "/bin/sh", "arg": ["-c", command], "capture-output": True}
        pid: int = self._ask("guest-exec", arguments)["pid"]
        return pid

    def look(self, pid: int) -> Finished | None:
        """Returns the result once; None while it still runs."""
        found = self._ask("guest-exec-status", {"pid": pid})
        if not found["exited"]:
            return None
        return Finished(
            code=found.get("exitcode", -1),
            output=_text(found.get("out-data", "")),
            errors=_text(found.get("err-data", "")),
        )

    def finish(self, pid: int, patience_s: float = PATIENCE_S) -> Finished:
        ends_s = time.monotonic() + patience_s
        while (found := self.look(pid)) is None:
            assert time.monotonic() < ends_s, f"a command in the VM takes over {patience_s:.0f} s"
            time.sleep(_LOOK_EVERY_S)
        return found

    def run(self, command: str) -> Finished:
        return self.finish(self.begin(command))

    def must(self, command: str) -> str:
        """Runs a command that must succeed, and returns its output."""
        done = self.run(command)
        said = (done.errors or done.output).strip()
        assert done.code == 0, f"in the VM, {command!r} ended with code {done.code}: {said}"
        return done.output.strip()

    def show(self, unit: str, *properties: str) -> dict[str, str]:
        shown = self.must(f"systemctl show {unit} --property={','.join(properties)}")
        return dict(line.split("=", 1) for line in shown.splitlines())

    def state_of(self, unit: str) -> str:
        return self.show(unit, "ActiveState")["ActiveState"]

    def log_of(self, unit: str, *options: str) -> list[str]:
        """Returns the messages of the unit in the journal of this boot."""
        asked = f"journalctl --boot --unit={unit} --output=json {' '.join(options)}"
        return [json.loads(line)["MESSAGE"] for line in self.must(asked).splitlines()]

    def _ask(self, execute: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self._talk.say(execute, arguments)
        heard = self._talk.hear(time.monotonic() + PATIENCE_S)
        assert "return" in heard, f"the guest agent refuses {execute}: {heard}"
        found: dict[str, Any] = heard["return"]
        return found


def _text(encoded: str) -> str:
    return base64.b64decode(encoded).decode(errors="replace")
