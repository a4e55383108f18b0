"""The route /stream: the journal as server-sent events, from any position."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairwarning.engine.protocols import Entry, Position, StoreDown
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.connection_limits import MEDIA_TYPE
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.dispatch import Dispatch, as_problem, problem_response
from fairwarning.operator_api.parse_request import checked_position
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.to_schema import entry_of

KEEP_ALIVE_S = 15  # Proxies often close a connection that is silent for 30 or 60 seconds.


class Streams:
    """The open streams. `stop` ends them, because the server would wait for them."""

    def __init__(self, control: Control, dispatch: Dispatch) -> None:
        self._control = control
        self._dispatch = dispatch
        self._stopping = asyncio.Event()

    def route(self, prefix: str) -> Route:
        return Route(f"{prefix}/stream", self._answer, methods=["GET"])

    def stop(self) -> None:
        self._stopping.set()

    async def _answer(self, request: Request) -> Response:
        try:
            caller = await self._dispatch.identify(request, Role.VIEWER)
            if request.method == "HEAD":
                return Response(media_type=MEDIA_TYPE)
            after = await self._begin(request)
            return self._dispatch.open_streams.begin(caller, self._lines(request, after))
        except Exception as error:
            return problem_response(as_problem(error))

    async def _begin(self, request: Request) -> Position:
        given = request.headers.get("last-event-id") or request.query_params.get("after")
        store = self._control.store
        if not given:
            return await store.end()
        return await checked_position(store, given)

    async def _lines(self, request: Request, after: Position) -> AsyncIterator[bytes]:
        changes = self._control.engine.changes(after)
        ahead: asyncio.Task[Entry] | None = None
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            yield b"retry: 1000\n\n"
            while not stopping.done():
                if ahead is None:
                    ahead = asyncio.ensure_future(anext(changes))
                done, _ = await asyncio.wait(
                    {ahead, stopping}, timeout=KEEP_ALIVE_S, return_when=asyncio.FIRST_COMPLETED
                )
                if not await self._is_still_allowed(request):
                    return
                if ahead in done:
                    yield _event(ahead.result())
                    ahead = None
                elif not done:
                    yield b": still here\n\n"
        finally:
            tasks = [task for task in (ahead, stopping) if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await changes.aclose()

    async def _is_still_allowed(self, request: Request) -> bool:
        """Return whether the token is still valid. It may be revoked while its stream is open."""
        try:
            await self._dispatch.identify(request, Role.VIEWER)
        except (Problem, StoreDown) as problem:
            return isinstance(problem, StoreDown)
        return True


def _event(entry: Entry) -> bytes:
    shown = entry_of(entry)
    data = msgspec.json.encode(shown)
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (
        shown.position.encode(),
        shown.kind.encode(),
        data,
    )
