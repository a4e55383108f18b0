"""Runs a server on a core of its own until the block ends."""

import http.client
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.metadata.environment import ROOT
from benchmarks.metadata.settings import SERVER_HOST, SOURCES, cores

_READY_S_MAX = 10
_END_S_MAX = 10


@dataclass(frozen=True, slots=True)
class Running:
    name: str
    pid: int
    address: str
    """HOST:PORT"""
    path: str


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    tag: str
    body: bytes


def pinned(command: Sequence[str], core: int) -> list[str]:
    return ["taskset", "--cpu-list", str(core), *command]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((SERVER_HOST, 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def started(
    command: Sequence[str], env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        pinned(command, cores()[0]),
        env=env,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(_END_S_MAX)
            except subprocess.TimeoutExpired:
                process.kill()


def ask(address: str, path: str) -> Answer:
    """Sends one GET from the first of the addresses that the servers know."""
    host, _, port = address.partition(":")
    connection = http.client.HTTPConnection(
        host, int(port), timeout=10, source_address=(SOURCES[0], 0)
    )
    try:
        connection.request("GET", path, headers={"Metadata": "true"})
        answer = connection.getresponse()
        return Answer(answer.status, answer.getheader("ETag") or "1", answer.read())
    finally:
        connection.close()


def wait_until_answering(server: Running) -> Running:
    deadline = time.monotonic() + _READY_S_MAX
    while True:
        try:
            answer = ask(server.address, server.path)
        except OSError:
            if time.monotonic() > deadline:
                raise SystemExit(f"{server.name} never answered") from None
            time.sleep(0.05)
        else:
            assert answer.status == 200, f"{server.name} answered {answer}"
            return server
