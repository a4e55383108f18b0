"""Attacks as one instance that sends more requests than it could read answers.

Eight connections from one address. Each asks once, as anybody would, and then sends the same
250 kB again and again and throws away what comes back; when the server hangs up, another
connection takes its place. With the usual limit of five requests a second nearly all are
beyond it; with `--rate 0` none is.
"""

import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.attack.model import Attack, Target
from benchmarks.attack.neighbours import ATTACKER
from benchmarks.metadata.settings import PATH

CONNECTIONS = 8
_BURST_BYTES = 250_000
_BOTH_WAYS = selectors.EVENT_READ | selectors.EVENT_WRITE
_HOST = b"Host: 169.254.169.254\r\n"
_POLL = f"GET {PATH} HTTP/1.1\r\n".encode() + _HOST + b"Metadata: true\r\n\r\n"
_REFUSED = b"GET / HTTP/1.1\r\n" + _HOST + b"\r\n"
_UPGRADE = b"GET / HTTP/1.1\r\n" + _HOST + b"Upgrade: x\r\nConnection: upgrade\r\n\r\n"
_MALFORMED = b"GET / HTTP/1.1\r\n" + _HOST + b"no colon\r\n\r\n"
_CHUNKED = (
    f"POST {PATH} HTTP/1.1\r\n".encode()
    + _HOST
    + b"Metadata: true\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"1\r\nx\r\n" * 40_000
    + b"0\r\n\r\n"
)


@dataclass(slots=True)
class _Sender:
    """One connection of the attacker."""

    socket: socket.socket
    left: memoryview
    """What is to be sent next; empty while the first answer is awaited."""


def flood(payload: bytes, target: Target, seconds: float) -> str:
    host, _, port = target.metadata.rpartition(":")
    connect = partial(_connect, (host, int(port)))
    selector = selectors.DefaultSelector()
    for _ in range(CONNECTIONS):
        _add(selector, connect)
    answers = reconnects = sent = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for key, ready in selector.select(timeout=0.1):
            sender: _Sender = key.data
            try:
                if ready & selectors.EVENT_READ:
                    said = sender.socket.recv(1_000_000)
                    if not said:
                        raise ConnectionResetError
                    answers += said.count(b"HTTP/1.1 ")
                    if not sender.left:
                        sender.left = memoryview(payload)
                        selector.modify(sender.socket, _BOTH_WAYS, sender)
                if ready & selectors.EVENT_WRITE:
                    count = sender.socket.send(sender.left)
                    sent += count
                    sender.left = sender.left[count:] or memoryview(payload)
            except BlockingIOError:
                continue
            except OSError:
                selector.unregister(sender.socket)
                sender.socket.close()
                _add(selector, connect)
                reconnects += 1
    for key in list(selector.get_map().values()):
        key.data.socket.close()
    return (
        f"{sent / seconds / 1e6:.1f} MB/s sent, {answers / seconds:,.0f} answers/s, "
        f"{reconnects / seconds:,.0f} new connections/s"
    )


def _connect(address: tuple[str, int]) -> _Sender:
    connection = socket.create_connection(address, 30, source_address=(ATTACKER, 0))
    connection.sendall(_REFUSED)
    connection.setblocking(False)
    return _Sender(connection, memoryview(b""))


def _add(selector: selectors.BaseSelector, connect: Callable[[], _Sender]) -> None:
    sender = connect()
    selector.register(sender.socket, selectors.EVENT_READ, sender)


def _burst(request: bytes) -> bytes:
    return request * (_BURST_BYTES // len(request))


def _both(name: str, payload: bytes, *, also_nginx: bool) -> list[Attack]:
    run = partial(flood, payload)
    return [
        Attack(name=f"{name}, limit 5/s", run=run),
        Attack(name=f"{name}, no limit", run=run, options=("--rate", "0"), also_nginx=also_nginx),
    ]


ATTACKS = [
    *_both("pipelined polls", _burst(_POLL), also_nginx=True),
    *_both("pipelined refusals", _burst(_REFUSED), also_nginx=True),
    *_both("pipelined upgrades", _burst(_UPGRADE), also_nginx=True),
    *_both("malformed", _burst(_MALFORMED), also_nginx=True),
    *_both("chunks of a byte", _CHUNKED, also_nginx=False),
]
