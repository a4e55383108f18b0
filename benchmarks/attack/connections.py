"""Opens many connections to the control plane, and measures polls of an instance.

`python -m benchmarks.attack.connections` starts a server for each attack, polls one instance every
few milliseconds, first alone and then while the attack holds its connections open. It prints that
instance's p50, p99 and longest poll, what `/healthz` and `GET /api/v1/events` answer meanwhile on
connections of their own and how long they take at most, and the server's peak memory.
"""

import http.client
import json
import os
import resource
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import trustme

QUIET_S = 3.0
ATTACK_S = 8.0
POLL_EVERY_S = 0.003
ASK_EVERY_S = 0.1
_SAMPLE_S = 0.02
_FLEET = 'test = true\n[[vm]]\nname = "neighbour"\n'
_FILES = 16_384
_FEW_FILES = 256


class Server(NamedTuple):
    pid: int
    metadata: str
    control: str
    trust: ssl.SSLContext | None
    token: str


class Attack(NamedTuple):
    name: str
    number: int
    sent: bytes
    """What each connection sends before it waits."""
    is_tls: bool = False
    files: int = _FILES


def attacks() -> Iterator[Attack]:
    yield Attack("2,500 half-sent heads", 2_500, b"GET / HTTP/1.1\r\nHost:")
    yield Attack("2,100 portal streams", 2_100, _get("/stream"))
    yield Attack("2,100 streams of the API", 2_100, _get("/api/v1/stream"))
    yield Attack("3,000 silent TLS handshakes", 3_000, b"", is_tls=True)
    yield Attack(f"400 idle, {_FEW_FILES} descriptors", 400, b"", files=_FEW_FILES)


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


@contextmanager
def server(attack: Attack) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "fleet.toml").write_text(_FLEET)
        words = ["--metadata", "127.0.0.1:0", "--fleet", str(folder / "fleet.toml"), "--json"]
        store = f"sqlite:///{folder}/store.db"
        trust, token = None, ""
        if attack.is_tls:
            trust = _certificate(folder)
            words += ["--control", "0.0.0.0:0", "--tls-certificate", str(folder / "cert.pem"),
                      "--tls-key", str(folder / "key.pem")]  # fmt: skip
            token = _made_token(store)
        else:
            words += ["--control", "127.0.0.1:0"]

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (attack.files, attack.files))

        process = subprocess.Popen(
            [sys.executable, "-m", "fairwarning", "serve", "--store", store, *words],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=limit,  # noqa: PLW1509
        )  # fmt: skip
        try:
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            control = ready["control"].replace("0.0.0.0", "127.0.0.1")
            yield Server(process.pid, ready["metadata"][0], control, trust, token)
        finally:
            process.kill()
            process.wait()


def _certificate(folder: Path) -> ssl.SSLContext:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    (folder / "cert.pem").write_bytes(issued.cert_chain_pems[0].bytes())
    (folder / "key.pem").write_bytes(issued.private_key_pem.bytes())
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def _made_token(store: str) -> str:
    words = ["token", "create", "--name", "bench", "--role", "viewer", "--store", store, "--json"]
    made = subprocess.run(
        [sys.executable, "-m", "fairwarning", *words], check=True, capture_output=True
    )
    return str(json.loads(made.stdout)["secret"])


class Polls:
    """One instance that polls, each time on a new connection, until it is told to end."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self.took_ms: list[float] = []
        self.failed = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Polls":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        path = "/vm/neighbour/metadata/scheduledevents?api-version=2020-07-01"
        while not self._over.wait(POLL_EVERY_S):
            began = time.perf_counter()
            host, port = str(self._url.hostname), self._url.port or 0
            connection = http.client.HTTPConnection(host, port, timeout=60)
            try:
                connection.request("GET", path, headers={"Metadata": "true"})
                answer = connection.getresponse()
                answer.read()
                self.failed += answer.status != 200
            except OSError:
                self.failed += 1
            finally:
                connection.close()
            self.took_ms.append((time.perf_counter() - began) * 1000)


class Questions:
    """Requests to the control plane, each on a new connection."""

    def __init__(self, found: Server, path: str) -> None:
        self._server = found
        self._path = path
        self.answers: Counter[str] = Counter()
        self.longest_ms = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Questions":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(ASK_EVERY_S):
            began = time.perf_counter()
            self.answers[self._ask()] += 1
            self.longest_ms = max(self.longest_ms, (time.perf_counter() - began) * 1000)

    def _ask(self) -> str:
        url = urlsplit(self._server.control)
        host, port, trust = str(url.hostname), url.port or 0, self._server.trust
        connection = (
            http.client.HTTPConnection(host, port, timeout=10)
            if trust is None
            else http.client.HTTPSConnection(host, port, timeout=10, context=trust)
        )
        headers = {"Authorization": f"Bearer {self._server.token}"} if self._server.token else {}
        try:
            connection.request("GET", self._path, headers=headers)
            return str(connection.getresponse().status)
        except OSError as problem:
            return type(problem).__name__
        finally:
            connection.close()

    def __str__(self) -> str:
        said = ", ".join(f"{count} of {word}" for word, count in sorted(self.answers.items()))
        return f"{said} {self.longest_ms:.0f} ms"


class Memory:
    """Samples the largest resident memory of a process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.peak_mb = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(_SAMPLE_S):
            pages = int(Path(f"/proc/{self._pid}/statm").read_text().split()[1])
            self.peak_mb = max(self.peak_mb, pages * os.sysconf("SC_PAGE_SIZE") / 1e6)


@contextmanager
def under(attack: Attack, found: Server) -> Iterator[None]:
    """Opens all connections, one after the other, and holds them."""
    over = threading.Event()
    url = urlsplit(found.control)
    address = (str(url.hostname), url.port or 0)

    def hold() -> None:
        held: list[socket.socket] = []
        while not over.is_set():
            if len(held) < attack.number:
                with suppress(OSError):
                    client = socket.create_connection(address, timeout=5)
                    client.sendall(attack.sent)
                    held.append(client)
            else:
                over.wait(0.05)
        for each in held:
            each.close()

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def run(attack: Attack) -> str:
    with server(attack) as found:
        with Polls(found.metadata) as alone:
            time.sleep(QUIET_S)
        health, events = Questions(found, "/healthz"), Questions(found, "/api/v1/events")
        with Memory(found.pid) as memory, Polls(found.metadata) as beside, under(attack, found):
            time.sleep(ATTACK_S / 2)
            with health, events:
                time.sleep(ATTACK_S / 2)
        return (
            f"{attack.name:30} {shown(alone.took_ms)} | {shown(beside.took_ms)} {beside.failed:5} "
            f"| {health!s:32} | {events!s:32} | {memory.peak_mb:5.0f} MB"
        )


def shown(took_ms: Sequence[float]) -> str:
    if len(took_ms) < 2:
        return f"{'-':>6} {'-':>7} {max(took_ms, default=0.0):8.1f}"
    parts = statistics.quantiles(took_ms, n=100)
    return f"{parts[49]:6.2f} {parts[98]:7.1f} {max(took_ms):8.1f}"


def main(wanted: Sequence[str]) -> None:
    """Runs the attacks that have one of these words in their names, or all."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, _FILES))
    heads = f"{'/healthz':32} | {'GET /api/v1/events':32} | {'peak':>8}"
    print(f"{'polls of another, in ms':30} {'alone: p50, p99, max':>23} | "
          f"{'beside the attack, failed':>29} | {heads}")  # fmt: skip
    for attack in attacks():
        if not wanted or any(word in attack.name for word in wanted):
            print(run(attack), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
