"""The part of the operator API that playing a scenario needs."""

from datetime import UTC, datetime
from typing import Any, Protocol

Json = dict[str, Any]


class RequestRefused(Exception):
    """The server refused, or did not answer. The message says what to do."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class OperatorApi(Protocol):
    """Sends requests. Each method raises `RequestRefused` if the request fails."""

    def get(self, *path: str, **params: Any) -> Json: ...

    def post(self, *path: str, body: Json | None = None) -> Json: ...

    def delete(self, *path: str) -> Json: ...


def instant(text: str) -> datetime:
    """Convert a time in the form of the API to a datetime in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC)
