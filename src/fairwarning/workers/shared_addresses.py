"""Opens a socket at each address for every worker, and decides which worker gets a connection.

All connections from one address reach the same worker, because the rate limit and the number of
connections of an instance are counted in one process. On loopback every client has the same
address, so there the client's port decides. A small program in the kernel (classic BPF) does this;
it is chosen once for all sockets of an address. A kernel that does not know it spreads connections
by its own hash; then an instance may send its allowance to each worker.
"""

import ctypes
import logging
import socket
import struct
from collections.abc import Callable, Sequence
from functools import partial

from fairwarning.metadata.server import BACKLOG, open_socket

_ATTACH_REUSEPORT_CBPF = 51  # Python's `socket` has no name for it.
_IP = 0x1_0000_0000 - 0x10_0000  # SKF_NET_OFF: offsets from here on count from the IP header.
_LOAD_WORD, _LOAD_HALF, _LOAD_BYTE = 0x20, 0x28, 0x30
_SHIFT_RIGHT, _MULTIPLY, _MODULO = 0x74, 0x24, 0x94
_TO_X, _FROM_X = 0x07, 0x87
_JUMP, _JUMP_IF_EQUAL = 0x05, 0x15
_RETURN_A = 0x16
_SPREAD = 0x9E37_79B1  # Knuth's multiplier: neighbouring addresses get different high bits.

_log = logging.getLogger(__name__)
Instruction = tuple[int, int, int, int]


Take = Callable[[str, Callable[[], socket.socket]], socket.socket]
"""Returns the socket that was handed over under a key, or makes a new one."""


def open_for_workers(
    addresses: Sequence[tuple[str, int]], workers: int, take: Take
) -> list[dict[str, socket.socket]]:
    """Return the listening sockets of each worker, one for each address. Raises OSError."""
    by_worker: list[dict[str, socket.socket]] = [{} for _ in range(workers)]
    for host, port in addresses:
        opened: list[socket.socket] = []
        for number, sockets in enumerate(by_worker):
            # Port 0 picks a free port for the first one, and the others share it.
            at = opened[0].getsockname()[1] if opened else port
            key = f"metadata {host} {port} {number}"
            opened.append(take(key, partial(open_socket, host, at, is_shared=True)))
            sockets[key] = opened[-1]
        # The index that the program returns is the order in which they began to listen.
        for each in opened:
            each.listen(BACKLOG)
        _steer(opened[0], workers)
    return by_worker


def _steer(opened: socket.socket, workers: int) -> None:
    program = b"".join(struct.pack("HBBI", *each) for each in _program(workers))
    code = ctypes.create_string_buffer(program)
    given = struct.pack("HL", len(program) // 8, ctypes.addressof(code))
    try:
        opened.setsockopt(socket.SOL_SOCKET, _ATTACH_REUSEPORT_CBPF, given)
    except OSError as error:
        _log.warning("connections are spread without regard to their address: %s", error)


def _program(workers: int) -> list[Instruction]:
    """Return the instructions that choose a worker from the first packet of a connection."""
    return [
        (_LOAD_BYTE, 0, 0, _IP),
        (_SHIFT_RIGHT, 0, 0, 4),
        (_JUMP_IF_EQUAL, 6, 0, 6),  # 2: to IPv6
        (_LOAD_WORD, 0, 0, _IP + 12),
        (_TO_X, 0, 0, 0),
        (_SHIFT_RIGHT, 0, 0, 24),
        (_JUMP_IF_EQUAL, 0, 8, 127),  # 6: not loopback, to the address
        (_LOAD_HALF, 0, 0, _IP + 20),
        (_JUMP, 0, 0, 9),  # 8: to the end
        (_LOAD_WORD, 0, 0, _IP + 8),  # 9: IPv6
        (_JUMP_IF_EQUAL, 0, 2, 0),
        (_LOAD_WORD, 0, 0, _IP + 20),
        (_JUMP_IF_EQUAL, 4, 0, 1),  # 12: loopback, to the port
        (_LOAD_WORD, 0, 0, _IP + 20),
        (_TO_X, 0, 0, 0),
        (_FROM_X, 0, 0, 0),  # 15: the address
        (_JUMP, 0, 0, 1),
        (_LOAD_HALF, 0, 0, _IP + 40),  # 17: the port of IPv6
        (_MULTIPLY, 0, 0, _SPREAD),  # 18: the end
        (_SHIFT_RIGHT, 0, 0, 16),
        (_MODULO, 0, 0, workers),
        (_RETURN_A, 0, 0, 0),
    ]
