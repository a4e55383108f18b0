"""Commands in the machine, run by QEMU's guest agent, and systemd's word on a unit."""

import base64
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.systemd.talking import Talk

PATIENCE_S = 120.0
"""An emulated machine is slow, and the computer that emulates it may be busy."""
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
        """After each boot: whatever was said to the agent before is not answered any more."""
        self._syncs += 1
        self._talk.say("guest-sync", {"id": self._syncs})
        while self._talk.hear(time.monotonic() + PATIENCE_S).get("return") != self._syncs:
            pass

    def begin(self, command: str) -> int:
        """Starts a shell command; `look` tells what became of it."""
        arguments = {"path": "/bin/sh", "arg": ["-c", command], "capture-output": True}
        pid: int = self._ask("guest-exec", arguments)["pid"]
        return pid

    def look(self, pid: int) -> Finished | None:
        """None: it still runs. What has ended can be looked at once."""
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
        """Its output."""
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
        """The messages in the journal, of this boot."""
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
