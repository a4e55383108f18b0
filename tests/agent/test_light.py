"""The agent runs on production VMs: it brings nothing of the server, and nothing heavy."""

import subprocess
import sys

SERVER = ("core", "engine", "stores", "metadata", "control", "drivers", "notifications",
          "fleetfile", "node", "boot", "sim", "testing", "portal", "rehearsal")  # fmt: skip
HEAVY = ("msgspec", "starlette", "uvicorn", "httpx", "rich", "cryptography", "psycopg", "uvloop",
         "prometheus_client", "apprise", "dbus_fast")  # fmt: skip
MODULES = ("fairwarning.agent.cli.main", "fairwarning.agent.program",
           "fairwarning.agent.cli.check_config",
           "fairwarning.agent.cli.explain", "fairwarning.agent.cli.test",
           "fairwarning.agent.cli.status", "fairwarning.agent.actions.registry")  # fmt: skip


def test_the_agent_imports_nothing_of_the_server() -> None:
    program = f"import sys, {', '.join(MODULES)}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert not [name for name in SERVER if f"fairwarning.{name}" in loaded]
    assert not [name for name in HEAVY if name in loaded]
