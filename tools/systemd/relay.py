"""Relays one connection from the VM to our server; QEMU runs it for each, with stdio as its end.

A file has the server's address; it does not exist before the server does.
"""

import os
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path

_CHUNK_BYTES = 65536


def main() -> None:
    with suppress(OSError):
        host, port = Path(sys.argv[1]).read_text().rsplit(":", 1)
        with socket.create_connection((host, int(port))) as server:
            threading.Thread(target=_upward, args=[server], daemon=True).start()
            while data := server.recv(_CHUNK_BYTES):
                os.write(1, data)


def _upward(server: socket.socket) -> None:
    with suppress(OSError):
        while data := os.read(0, _CHUNK_BYTES):
            server.sendall(data)
        server.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main()
