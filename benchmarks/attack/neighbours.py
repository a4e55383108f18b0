"""Polls as other instances, while one of them attacks.

Each polls four times a second, which is within the limit of a real fleet: in turn on a kept
connection and on a fresh one. It is the time from sending to the answer that counts; a fresh
connection's includes the connect. One poll waits for the one before it, and after a long one
nobody hurries to catch up.
"""

import math
import socket
import time
from dataclasses import dataclass, field

from benchmarks.attack.model import Target
from benchmarks.metadata.settings import PATH, SOURCES

ATTACKER = SOURCES[0]
NEIGHBOURS = SOURCES[1:]
_POLLS_PER_S = 4
_ANSWER_S_MAX = 30
_KEPT = f"GET {PATH} HTTP/1.1\r\nHost: 169.254.169.254\r\nMetadata: true\r\n\r\n".encode()
_FRESH = _KEPT.removesuffix(b"\r\n") + b"Connection: close\r\n\r\n"


@dataclass(slots=True)
class Times:
    """Times of polls in milliseconds."""

    kept: list[float] = field(default_factory=list)
    fresh: list[float] = field(default_factory=list)


def poll(target: Target, seconds: float) -> Times:
    host, _, port = target.metadata.rpartition(":")
    address = (host, int(port))
    kept = [_connect(address, source) for source in NEIGHBOURS]
    times = Times()
    pause = 1 / _POLLS_PER_S / len(NEIGHBOURS)
    due = time.perf_counter()
    end = due + seconds
    number = 0
    while due < end:
        time.sleep(max(0, due - time.perf_counter()))
        at = number % len(NEIGHBOURS)
        sent = time.perf_counter()
        if number % 2:
            with _connect(address, NEIGHBOURS[at]) as fresh:
                _ask(fresh, _FRESH)
            times.fresh.append(_since_ms(sent))
        else:
            _ask(kept[at], _KEPT)
            times.kept.append(_since_ms(sent))
        number += 1
        due = max(due + pause, time.perf_counter())
    for connection in kept:
        connection.close()
    return times


def quantile(times: list[float], share: float) -> float:
    if not times:
        return math.nan
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _connect(address: tuple[str, int], source: str) -> socket.socket:
    return socket.create_connection(address, _ANSWER_S_MAX, source_address=(source, 0))


def _ask(connection: socket.socket, request: bytes) -> None:
    connection.sendall(request)
    said = b""
    while b"\r\n\r\n" not in said:
        piece = connection.recv(65_536)
        assert piece, "the server hung up on a neighbour"
        said += piece
    assert said.startswith(b"HTTP/1.1 200"), said


def _since_ms(moment: float) -> float:
    return (time.perf_counter() - moment) * 1000
