"""Plays a story with VMs that are network namespaces.

`run_in_vms(story, ...)` calls `story(rig, ...)` in a new process whose network holds nothing
but 169.254.169.254 and a private link to each VM, and hands back what the story returned. No
packet can leave, so the real address and port 80 may be used; root is not needed, since the
new network belongs to a new user namespace.

A story is a module-level function; what goes in and out of it is JSON. It runs in a process
of its own because a process cannot enter a user namespace once it has threads. What it prints
goes where the caller's output goes.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairwarning.handler_check.namespace import ENDPOINT, NoNamespaces, new_network
from tests.support.patience import HANG_S

__all__ = ["ENDPOINT", "NoNamespaces", "new_network", "run_in_vms"]

_ROOT = Path(__file__).resolve().parents[2]


def run_in_vms(
    story: Callable[..., Any],
    vms: Mapping[str, str | Sequence[str]],
    *,
    endpoints: Sequence[str] = (ENDPOINT,),
    arguments: Mapping[str, Any] | None = None,
    timeout_s: float = HANG_S,
) -> Any:
    """Plays `story(rig, **arguments)` with VMs of these names and addresses.

    Raises `NoNamespaces` where none can be made, `AssertionError` if the story fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        order = {
            "story": f"{story.__module__}:{story.__qualname__}",
            "vms": {name: _listed(addresses) for name, addresses in vms.items()},
            "endpoints": list(endpoints),
            "arguments": dict(arguments or {}),
            "result": str(result),
        }
        _play(
            [*new_network(), sys.executable, "-m", "tests.support.namespace_worker"],
            order,
            timeout_s,
        )
        return json.loads(result.read_text())


def _listed(addresses: str | Sequence[str]) -> list[str]:
    return [addresses] if isinstance(addresses, str) else list(addresses)


def _play(command: Sequence[str], order: Mapping[str, Any], timeout_s: float) -> None:
    story = order["story"]
    process = subprocess.Popen(
        [*command, json.dumps(order)],
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        code = process.wait(timeout_s)
    except BaseException as interruption:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(interruption, subprocess.TimeoutExpired):
            raise AssertionError(f"{story} took longer than {timeout_s} s") from None
        raise
    if code != 0:
        raise AssertionError(f"{story} failed with code {code}; its output says why")
