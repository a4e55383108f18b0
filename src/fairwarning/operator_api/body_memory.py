"""How much of all bodies is held in memory, while they come and while they are worked on."""

from collections import Counter
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairwarning.operator_api.problems import Problem

FREE_BYTES = 64 * 1024
"""Of each body: whoever sends little is never refused for the sake of those who send much."""
ALL_BYTES_MAX = 64 * 1024 * 1024
CLIENT_BYTES_MAX = 16 * 1024 * 1024
"""Of one client address."""


class BodyRoom:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._held: Counter[str] = Counter()
        """By client address, beyond what is free."""

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

        try:
            await self._app(scope, counted, send)
        finally:
            count(0)


def _counter(held: Counter[str], client: str) -> Callable[[int], None]:
    """Says how much one request holds of late. Raises Problem if that is too much."""
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
