"""Runs a program, or `fairwarning serve`, as a process that ends with the test's block."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any

_STOP_S_MAX = 5


def clean_environment() -> dict[str, str]:
    """Returns our environment without proxies, which no client of an endpoint may use."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("proxy")}


def free_port() -> int:
    """Returns a port on which nobody listens, though another process may take it meanwhile."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(argv: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Starts a process and ends it with the block, at the latest."""
    options.setdefault("env", clean_environment())
    with subprocess.Popen(argv, text=True, **options) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(_STOP_S_MAX)
            except subprocess.TimeoutExpired:
                process.kill()


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server that is ready: its process id and its URLs."""

    pid: int
    metadata: str
    control: str


@contextmanager
def serving(
    *options: str,
    metadata: str = "127.0.0.1:0",
    log: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Iterator[Served]:
    """Runs `fairwarning serve` on free ports, with its store in memory, until the block ends.

    `log` takes what it prints as an error; without it, that is thrown away.
    """
    listeners = ("--metadata", metadata, "--control", "127.0.0.1:0")
    command = [sys.executable, "-m", "fairwarning", "serve", "--json", "--store", "memory:"]
    with (
        open(log or os.devnull, "w") as errors,
        running(
            [*command, *listeners, *options],
            stdout=PIPE,
            stderr=errors,
            env=env or clean_environment(),
        ) as process,
    ):
        assert process.stdout is not None
        if not (line := process.stdout.readline()):
            reason = log.read_text().strip() if log else f"code {process.wait(_STOP_S_MAX)}"
            raise AssertionError(f"the server ended before it was ready: {reason}")
        ready = json.loads(line)
        yield Served(pid=process.pid, metadata=ready["metadata"][0], control=ready["control"])
