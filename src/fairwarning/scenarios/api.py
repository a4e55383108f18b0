"""The operator API, as far as a player needs it, and how it says no."""

from datetime import UTC, datetime
from typing import Any, Protocol

Json = dict[str, Any]


class Declined(Exception):
    """The server answered no, or did not answer. The message says what to do."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Operator(Protocol):
    """Each raises Declined."""

    def get(self, *path: str, **params: Any) -> Json: ...

    def post(self, *path: str, body: Json | None = None) -> Json: ...

    def delete(self, *path: str) -> Json: ...


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
