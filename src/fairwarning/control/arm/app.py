"""ARM over HTTP: identity, role, reading, and errors in ARM's own form."""

import asyncio
import logging
import re
from collections.abc import Iterable

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairwarning.control.access import Role
from fairwarning.control.arm.call import Arm, ArmCall, Json, Reply, Routes
from fairwarning.control.arm.errors import ArmError, as_arm_error
from fairwarning.control.arm.loose_json import strict_json
from fairwarning.control.arm.operations import Operations, new_operation_id
from fairwarning.control.arm.paths import BadPath, ResourcePath, resource_path
from fairwarning.control.arm.router import Router
from fairwarning.control.arm.shelf import Shelf
from fairwarning.control.context import Control
from fairwarning.control.dispatch import Dispatch, read_all
from fairwarning.control.problems import Problem, of_stop

BODY_BYTES_MAX = 4 * 1024 * 1024
"""As on Azure: a template may be this large."""
DEPTH_MAX = 100
_VERSION = re.compile(r"\d{4}-\d{2}-\d{2}(-preview|-privatepreview|-beta|-alpha)?", re.IGNORECASE)
_METHODS = ["GET", "HEAD", "PUT", "PATCH", "POST", "DELETE"]
_log = logging.getLogger(__name__)


class ArmApp:
    def __init__(self, control: Control, dispatch: Dispatch, tables: Iterable[Routes]) -> None:
        self._dispatch = dispatch
        router = Router(tables)

        async def answer(call: ArmCall) -> Reply:
            return await router.answer(self.arm, call)

        self.arm = Arm(
            control=control,
            shelf=Shelf(control.store),
            operations=Operations(control.store, control.clock),
            answer=answer,
        )

    def routes(self) -> list[Route]:
        return [
            Route("/subscriptions", self._serve, methods=_METHODS),
            Route("/subscriptions/{rest:path}", self._serve, methods=_METHODS),
        ]

    async def _serve(self, request: Request) -> Response:
        try:
            reply = await self._answer(request)
        except Exception as error:
            return error_response(error)
        except asyncio.CancelledError:
            if not self._dispatch.is_stopping:
                raise
            return error_response(of_stop())
        body = b"" if reply.body is None else msgspec.json.encode(reply.body)
        headers = {"x-ms-request-id": new_operation_id(), **reply.headers}
        return Response(body, reply.status, headers=headers, media_type="application/json")

    async def _answer(self, request: Request) -> Reply:
        path = _path(request)
        caller = await self._dispatch.identify(request, role_of(request.method, path))
        query = {name.lower(): value for name, value in request.query_params.items()}
        refuse_version(query.get("api-version"))
        raw = await read_all(request, BODY_BYTES_MAX)
        call = ArmCall(
            method=request.method,
            path=path,
            query=query,
            body=read_json(raw),
            caller=caller,
            base_url=f"{request.url.scheme}://{request.headers.get('host', '')}",
            why=request.headers.get("commandname", "")[:100],
        )
        return await self.arm.answer(call)


def error_response(error: Exception) -> Response:
    found = as_arm_error(error)
    if not isinstance(error, ArmError | Problem) and found.status >= 500:
        _log.error("a request to ARM broke", exc_info=error)
    body = msgspec.json.encode({"error": found.failure.json()})
    headers = {"x-ms-request-id": new_operation_id(), **found.headers}
    return Response(body, found.status, headers=headers, media_type="application/json")


def _path(request: Request) -> ResourcePath:
    try:
        return resource_path(request.url.path)
    except BadPath as problem:
        raise ArmError(404, "InvalidResourceId", f"{problem}.") from None


def role_of(method: str, path: ResourcePath) -> Role:
    if method in ("GET", "HEAD"):
        return Role.VIEWER
    return Role.APPROVER if path.namespace == "Microsoft.Maintenance" else Role.OPERATOR


def refuse_version(version: str | None) -> None:
    if not version:
        raise ArmError(
            400,
            "MissingApiVersionParameter",
            "The api-version query parameter (?api-version=) is required for all requests.",
        )
    if not _VERSION.fullmatch(version):
        raise ArmError(
            400,
            "InvalidApiVersionParameter",
            f"The api-version '{version[:40]}' is invalid; write a date like 2024-11-01.",
        )


def read_json(raw: bytes) -> Json | None:
    """An object, or nothing at all. Raises ArmError."""
    if not raw.strip():
        return None
    try:
        body = _decoded(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as problem:
        raise _not_understood(str(problem)) from None
    if not isinstance(body, dict):
        raise _not_understood(f"it is of type {type(body).__name__}; send a JSON object")
    if _depth(body) > DEPTH_MAX:
        raise _not_understood(f"it is nested more than {DEPTH_MAX} levels deep")
    return body


def _decoded(raw: bytes) -> object:
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return msgspec.json.decode(strict_json(raw.decode()))


def _not_understood(why: str) -> ArmError:
    return ArmError(
        400,
        "InvalidRequestContent",
        f"The request content was invalid and could not be deserialized: '{why}'.",
    )


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        below: list[object] = []
        for each in level:
            if isinstance(each, dict):
                below += each.values()
            elif isinstance(each, list):
                below += each
        level = below
    return depth
