"""Answers a request: identifies the caller, checks the role, parses, and calls the route."""

import asyncio
import dataclasses
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from fairwarning.core.refusals import Refused
from fairwarning.engine.protocols import SchemaTooNew, StoreDown
from fairwarning.operator_api.auth import LOCAL, Caller, Role
from fairwarning.operator_api.browser_protection import refuse_foreign
from fairwarning.operator_api.connection_limits import OpenStreams, client_of
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.idempotency import Idempotency, answer_of
from fairwarning.operator_api.metrics import Metrics
from fairwarning.operator_api.offload import caller_key
from fairwarning.operator_api.parse_request import (
    BODY_BYTES_MAX,
    FLEET_BYTES_MAX,
    is_toml,
    read_body,
    read_document,
    read_query,
)
from fairwarning.operator_api.problems import (
    MEDIA_TYPE,
    Problem,
    of_bug,
    of_outage,
    of_outdated,
    of_refusal,
    of_stop,
)
from fairwarning.operator_api.route import Call, Route, StreamHandler
from fairwarning.operator_api.schemas import Out
from fairwarning.operator_api.spooled_bodies import SpooledBodies

WHY_CHARS_MAX = 1_024  # A few sentences; the history keeps each for ever.
BODY_S_MAX = 60  # The largest body takes that long over a slow line (0.5 Mbit/s).
NDJSON = "application/x-ndjson"
"""Callers that accept this get an answer of many lines where a route has one."""
_log = logging.getLogger(__name__)


class Dispatch:
    def __init__(self, control: Control, metrics: Metrics, *, needs_token: bool) -> None:
        self._control = control
        self._metrics = metrics
        self._needs_token = needs_token
        self._idempotency = Idempotency(control)
        self._bodies = SpooledBodies()
        self.open_streams = OpenStreams()
        self.stopping = asyncio.Event()

    @property
    def is_stopping(self) -> bool:
        return self.stopping.is_set()

    async def run(self, route: Route, request: Request) -> Response:
        began = time.perf_counter()
        response = await self._guarded(route, request)
        took_s = time.perf_counter() - began
        self._metrics.note_request(route.method, route.path, response.status_code, took_s)
        return response

    async def identify(self, request: Request, role: Role) -> Caller:
        """Return the caller. Raises Problem if it is unknown or its role is below `role`."""
        caller = await self._identify(request, role)
        caller_key.set(caller.key)
        return caller

    async def _identify(self, request: Request, role: Role) -> Caller:
        if not self._needs_token:
            refuse_foreign(request.headers, request.url.scheme)
        given = request.headers.getlist("authorization")
        if not given and not self._needs_token:
            return local_caller(request)
        scheme, _, text = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        is_bearer = scheme.lower() == "bearer"
        caller = await self._control.tokens.caller(text.strip()) if is_bearer else None
        if caller is None:
            raise Problem(
                401,
                "token-needed",
                "this needs a token that is valid: wrong, revoked and expired ones are refused "
                "alike; set FAIRWARNING_TOKEN (the header Authorization: Bearer …), an admin makes "
                "one with `fairwarning token create`",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if caller.role < role:
            raise Problem(
                403,
                "role-too-low",
                f"this needs the role {role.word} and {caller.name} has {caller.role.word}; ask an "
                "admin for another token",
            )
        return caller

    async def _guarded(self, route: Route, request: Request) -> Response:
        try:
            return await self._answer(route, request)
        except Exception as error:
            return problem_response(as_problem(error))
        except asyncio.CancelledError:
            if not self.is_stopping:
                raise
            return problem_response(of_stop())

    async def _answer(self, route: Route, request: Request) -> Response:
        caller = await self.identify(request, route.role)
        pairs = request.query_params.multi_items()
        why = _why(pairs)
        query = read_query(route.query, [pair for pair in pairs if pair[0] != "why"])
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if route.stream is not None and NDJSON in request.headers.get("accept", ""):
            asked: Call[Any, Any] = Call(
                caller=caller, path=request.path_params, query=query, body=None, why=why
            )
            return await self._stream(route.stream, request, asked, is_toml(media_type))
        raw = await _body(route, request)
        body = (
            read_document(raw, media_type)
            if route.takes_toml
            else read_body(route.body, raw, media_type, optional=route.is_body_optional)
        )
        call = Call(caller=caller, path=request.path_params, query=query, body=body, why=why)
        key = _key(request)
        if key is None or route.method != "POST" or route.is_preview:
            return _response(route, await answer_of(route, self._control, call))
        answer = await self._idempotency.once(route, call, key, _question(request, raw))
        response = _response(route, answer.body)
        if answer.is_replay:
            response.headers["Idempotent-Replay"] = "true"
        return response

    async def _stream(
        self, handle: StreamHandler, request: Request, call: Call[Any, Any], is_toml: bool
    ) -> Response:
        """Receive the body, and return an answer of many lines. Its first line is made before the
        answer begins, so that a refusal gets its own status.
        """
        async with AsyncExitStack() as ends:
            body = await ends.enter_async_context(
                self._bodies.receive(request, call.caller.key, is_toml=is_toml)
            )
            call = dataclasses.replace(call, body=body)
            lines = await ends.enter_async_context(aclosing(handle(self._control, call)))
            return _Lines(await anext(lines), lines, ends.pop_all())


class _Lines(StreamingResponse):
    """A response of many lines, one JSON object each. At its end it closes the generator of the
    lines.
    """

    def __init__(self, first: Out, rest: AsyncGenerator[Out, None], ends: AsyncExitStack) -> None:
        headers = {"X-Accel-Buffering": "no"}
        super().__init__(_encoded(first, rest), headers=headers, media_type=NDJSON)
        self._ends = ends

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._ends:
            await super().__call__(scope, receive, send)


async def _encoded(first: Out, rest: AsyncGenerator[Out, None]) -> AsyncIterator[bytes]:
    """Yield the lines. An error that comes after the first line is the last line."""
    yield msgspec.json.encode(first) + b"\n"
    try:
        async for each in rest:
            yield msgspec.json.encode(each) + b"\n"
    except Exception as error:
        yield b'{"step":"problem","problem":%s}\n' % as_problem(error).body()


def local_caller(request: Request) -> Caller:
    """Return the caller of a request that needs no token."""
    address = "" if request.client is None else client_of(request.client.host)
    return LOCAL._replace(address=address)


def as_problem(error: Exception) -> Problem:
    match error:
        case Problem():
            return error
        case Refused():
            return of_refusal(error)
        case SchemaTooNew():
            return of_outdated()
        case StoreDown():
            _log.warning("a request met an outage: %s", error)
            return of_outage()
        case ClientDisconnect():
            return Problem(400, "body-cut-off", "the body ended early; send it again")
        case _:
            _log.error("a request broke", exc_info=error)
            return of_bug()


def problem_response(problem: Problem) -> Response:
    return Response(problem.body(), problem.status, headers=problem.headers, media_type=MEDIA_TYPE)


def _response(route: Route, body: bytes) -> Response:
    return Response(body, route.status, media_type="application/json")


def _key(request: Request) -> str | None:
    given = request.headers.getlist("idempotency-key")
    if len(given) > 1:
        raise Problem(
            422, "idempotency-key-invalid", "Idempotency-Key is given more than once; send one"
        )
    return given[0] if given else None


def _why(pairs: list[tuple[str, str]]) -> str:
    found = [text for name, text in pairs if name == "why"]
    if len(found) > 1 or any(len(text) > WHY_CHARS_MAX or "\0" in text for text in found):
        raise Problem(
            422,
            "parameter-invalid",
            f"why is given once, with at most {WHY_CHARS_MAX} characters",
        )
    return found[0] if found else ""


async def _body(route: Route, request: Request) -> bytes:
    """Return the body, which is empty for a GET or DELETE."""
    if route.method in ("GET", "DELETE"):
        return b""
    return await read_all(request, FLEET_BYTES_MAX if route.takes_toml else BODY_BYTES_MAX)


async def read_all(request: Request, bytes_max: int) -> bytes:
    """Return the whole body. Raises Problem if it is too large or too slow."""
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_S_MAX):
            async for part in request.stream():
                size += len(part)
                if size > bytes_max:
                    raise Problem(
                        413,
                        "body-too-large",
                        f"the body is larger than {bytes_max:,} bytes; send less at once",
                        headers={"Connection": "close"},
                    )
                parts.append(part)
    except TimeoutError:
        raise Problem(
            408,
            "body-too-slow",
            f"the body took more than {BODY_S_MAX} s; send it faster",
            headers={"Connection": "close"},
        ) from None
    return b"".join(parts)


def _question(request: Request, raw: bytes) -> bytes:
    """Return bytes that identify the request. The body is last, because it may hold a NUL."""
    url = request.url
    return b"\0".join([request.method.encode(), quote(url.path).encode(), url.query.encode(), raw])
