"""No table and no plan is wider than 100 columns, with names as long as Azure allows."""

import base64
import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairwarning.cli.output import WIDTH_MAX
from fairwarning.testing import Server
from tests.cli.conftest import Program
from tests.cli.fake import fake_server
from tests.cli.test_examples import _put_dead_letter

LONG = "customer-facing-checkout-and-payment-services-of-western-europe"
VM = f"{LONG[:-3]}-1"
FLEET = f"""\
test = true
resource_group = "{LONG}"
location = "germanywestcentral"

[[availability_set]]
name = "{LONG}"
update_domains = 3
instances = ["{LONG[:-3]}-0", "{VM}", "{LONG[:-3]}-2"]

[[scale_set]]
name = "{LONG[:-4]}"
capacity = 6
update_domains = 2
terminate_notice = "15m"
"""
WHY = "the hosts of this rack get new firmware, see the ticket of the data centre's own people"
COMMANDS = (
    "events",
    "events --all",
    "event show {event}",
    "history",
    "history --event {event}",
    "fleet show",
    "fleet plan other.toml",
    f"rollout plan {LONG} --type reboot --window '22:00-04:00' --time-zone Europe/Berlin",
    "rollout list",
    "rollout show {rollout}",
    "token list",
    "fault list",
    "notification list",
    "notification dead-letters",
    "scenario list",
    f"scale {LONG[:-4]} 4 --yes",
    f"model {LONG[:-4]} --terminate-notice 10m",
    f"policy {LONG} --approve-reboot",
    "check --list",
)


@contextmanager
def world(folder: Path) -> Iterator[tuple[Program, dict[str, str]]]:
    (folder / "other.toml").write_text(FLEET.replace("capacity = 6", "capacity = 3"))
    (folder / "hook-key").write_text("whsec_" + base64.b64encode(bytes(24)).decode())
    with Server(fleet=FLEET) as server, fake_server() as receiver:
        (folder / "hook-url").write_text(f"{receiver.url}/{'hook/' * 20}")
        program = Program(server.control_url)

        def made(*words: str) -> str:
            result = program(*words, "--json")
            assert result.exit_code == 0, result.output
            return str(json.loads(result.stdout).get("id"))

        server.vm(VM).document()
        server.vm(f"{LONG[:-4]}_0").document()
        made("token", "create", "--role", "operator", "--name", LONG, "--expires", "90d")
        made("notification", "add", "webhook", "--name", LONG, "--url-file", "hook-url")
        made("fault", "set", "slow", "--instance", VM, "--probability", "0.125", "--for", "3d")
        named = ("--name", f"{LONG} of November", "--why", WHY, "--description", WHY)
        windows = ("--window", "mon-fri 22:00-04:00", "--blackout", "2026-12-24/2026-12-26")
        rollout = made(
            "rollout", "start", LONG[:-4], "--type", "redeploy", *named, *windows, "--yes"
        )
        event = made("schedule", "redeploy", VM, "--description", WHY, "--why", WHY)
        made("restart", f"{LONG[:-3]}-2", "--why", WHY)
        server._background.call(_put_dead_letter(server))
        yield program, {"event": event, "rollout": rollout}


def too_wide(text: str) -> list[str]:
    """Return the lines that are too wide, though they could be broken between two words.

    An id, an address or a command is never broken, because people copy it.
    """
    lines = [line.rstrip() for line in text.splitlines() if ": fairwarning " not in line]
    return [
        line
        for line in lines
        if len(line) > WIDTH_MAX and not re.fullmatch(r"\s*(?:\S+(?: \S+)?\s\s+)?\S+", line)
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_is_too_wide(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with world(tmp_path) as (program, known):
        result = program(*shlex.split(command.format(**known)))
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) > 1
    assert not too_wide(result.stdout)
