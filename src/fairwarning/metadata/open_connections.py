"""Keeps all open connections of clients, so that the endpoint can count, sweep and close them."""

from collections.abc import Iterator
from typing import Protocol


class OpenConnection(Protocol):
    """What the endpoint calls on each connection."""

    address: str

    def forget_poll(self) -> None:
        """Forget the last poll, so that the next one is parsed even if its bytes are the same."""

    def sweep(self, now_s: float) -> None:
        """Expire if the client has been silent for too long."""

    def shut_down(self) -> None:
        """Answer a held poll with 503. Close at once if no response is still to be sent."""

    def expire(self) -> None:
        """Cut the connection at once."""


class OpenConnections:
    """All open connections, and how many each address has."""

    def __init__(self) -> None:
        self._open: set[OpenConnection] = set()
        self._counts: dict[str, int] = {}

    def __iter__(self) -> Iterator[OpenConnection]:
        return iter(self._open)

    def __len__(self) -> int:
        return len(self._open)

    def count(self, address: str) -> int:
        """Return how many open or reserved connections this address has."""
        return self._counts.get(address, 0)

    def reserve(self, address: str) -> None:
        """Count a connection before it exists, so that many at once can't exceed the limit."""
        self._counts[address] = self._counts.get(address, 0) + 1

    def release(self, address: str) -> None:
        """Reduce the count of this address by one."""
        left = self._counts.get(address, 0) - 1
        if left > 0:
            self._counts[address] = left
        else:
            self._counts.pop(address, None)

    def add(self, connection: OpenConnection) -> None:
        """Add a connection that `reserve` has already counted."""
        self._open.add(connection)

    def remove(self, connection: OpenConnection) -> None:
        """Remove a connection, and reduce the count of its address."""
        self._open.discard(connection)
        self.release(connection.address)

    def forget_polls(self) -> None:
        for connection in self._open:
            connection.forget_poll()

    def sweep(self, now_s: float) -> None:
        for connection in list(self._open):
            connection.sweep(now_s)

    def shut_down(self) -> None:
        for connection in list(self._open):
            connection.shut_down()

    def expire(self) -> None:
        for connection in list(self._open):
            connection.expire()
