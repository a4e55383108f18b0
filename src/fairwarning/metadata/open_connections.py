"""The connections that clients have open, as far as the endpoint must reach all of them."""

from collections.abc import Iterator
from typing import Protocol


class OpenConnection(Protocol):
    """What the endpoint asks of each connection."""

    address: str

    def forget_poll(self) -> None:
        """Parse the next poll again, whatever its bytes are."""

    def sweep(self, now_s: float) -> None:
        """Expire if the client has been silent for too long."""

    def shut_down(self) -> None:
        """End politely: a held poll is told to come again."""

    def expire(self) -> None:
        """End at once."""


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
        """Return how many connections this address has open, reserved ones included."""
        return self._counts.get(address, 0)

    def reserve(self, address: str) -> None:
        """Count a connection before there is an object for it: one turn may accept many."""
        self._counts[address] = self._counts.get(address, 0) + 1

    def release(self, address: str) -> None:
        """Count one connection of the address less."""
        left = self._counts.get(address, 0) - 1
        if left > 0:
            self._counts[address] = left
        else:
            self._counts.pop(address, None)

    def add(self, connection: OpenConnection) -> None:
        """Add a connection whose address has been reserved."""
        self._open.add(connection)

    def remove(self, connection: OpenConnection) -> None:
        """Remove a connection, and release its address."""
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
