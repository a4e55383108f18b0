"""Limits how much memory the bodies of all requests take together."""

from collections import Counter
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairwarning.operator_api.problems import Problem

FREE_BYTES = 64 * 1024
"""This part of each body does not count, so large requests cannot block small ones."""
ALL_BYTES_MAX = 64 * 1024 * 1024  # Sixteen of the largest bodies at once.
RELEASE = "fairwarning.release_body"
"""A key of the ASGI scope. Its value is a function that is called with the number of bytes that are
no longer held.
"""
CLIENT_BYTES_MAX = 16 * 1024 * 1024
"""The maximum memory for all bodies of one client address."""


class BodyMemory:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._held: Counter[str] = Counter()
        """The counted bytes of each client address; `FREE_BYTES` of each body are not counted."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = (scope.get("client") or ("",))[0]
        count = _counter(self._held, client)
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            count(max(0, taken - FREE_BYTES))
            return message

        def release(freed: int) -> None:
            nonlocal taken
            taken -= freed
            count(max(0, taken - FREE_BYTES))

        scope[RELEASE] = release
        try:
            await self._app(scope, counted, send)
        finally:
            count(0)


def _counter(held: Counter[str], client: str) -> Callable[[int], None]:
    """Return a function that notes how many bytes one request holds.

    It raises Problem if a limit is exceeded.
    """
    mine = 0

    def count(now: int) -> None:
        nonlocal mine
        more, mine = now - mine, now
        if not more:
            return
        held[client] += more
        if not held[client]:
            del held[client]
        if more > 0 and (held.total() > ALL_BYTES_MAX or held[client] > CLIENT_BYTES_MAX):
            raise Problem(
                503,
                "too-many-bodies",
                "too many large bodies are under way; send this one again in a moment",
                headers={"Retry-After": "5", "Connection": "close"},
            )

    return count
