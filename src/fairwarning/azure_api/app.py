"""Serves ARM over HTTP.

It authorizes and reads requests, calls their handlers and renders errors.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from fairwarning.azure_api.api_versions import refuse_unknown_version
from fairwarning.azure_api.body_types.conform import with_known_members
from fairwarning.azure_api.body_values import refuse_tag_names
from fairwarning.azure_api.errors import ArmError, as_arm_error, bad_token
from fairwarning.azure_api.etags import tag_header
from fairwarning.azure_api.group_state import get_group, refuse_deleting, spelled_subscription
from fairwarning.azure_api.lenient_json import not_understood, object_in, read_json
from fairwarning.azure_api.locks import refuse_locked
from fairwarning.azure_api.operations import Operations, new_operation_id
from fairwarning.azure_api.paths import BadPath, ResourcePath, resource_path
from fairwarning.azure_api.regions import refuse_region
from fairwarning.azure_api.request import Arm, ArmCall, Handler, Json, Reply, Routes
from fairwarning.azure_api.resource_store import ResourceStore
from fairwarning.operator_api.auth import Caller, Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.dispatch import Dispatch, read_all
from fairwarning.operator_api.problems import Problem, of_stop

TEMPLATE_BYTES_MAX = 4 * 1024 * 1024
"""The maximum size of a deployment's body. Azure has the same limit."""
BODY_BYTES_MAX = 512 * 1024
"""The maximum size of the body of a single resource."""
BODY_VALUES_MAX = 20_000
SMALL_BYTES = 16 * 1024
"""A body up to this size is parsed in this process. A larger body is parsed in another one."""
_VERSION = re.compile(r"\d{4}-\d{2}-\d{2}(-preview|-privatepreview|-beta|-alpha)?", re.IGNORECASE)
_GROUP = "microsoft.resources/subscriptions/resourcegroups"
_DEPLOYMENTS = "microsoft.resources/deployments"
_APPROVALS = frozenset({"scheduledevents", "applyupdates"})
"""The types of Microsoft.Maintenance that approve events. They need only the role approver."""
_log = logging.getLogger(__name__)


class ArmApp:
    def __init__(self, control: Control, dispatch: Dispatch, tables: Iterable[Routes]) -> None:
        self._dispatch = dispatch
        router = Router(tables)

        async def answer(call: ArmCall) -> Reply:
            return await router.answer(self.arm, call)

        self.arm = Arm(
            control=control,
            resources=ResourceStore(control.store),
            operations=Operations(control.store, control.clock),
            answer=answer,
        )

    def routes(self) -> list[Route]:
        below = Route("/subscriptions/{rest:path}", self)
        # By default a path ends at a line break, but the refusal of such a name is ARM's too.
        below.path_regex = re.compile(below.path_regex.pattern, re.DOTALL)
        return [Route("/subscriptions", self), below]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves all methods, because the refusal of a method has ARM's form too."""
        response = await self._serve(Request(scope, receive, send))
        await response(scope, receive, send)

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
        headers = {"x-ms-request-id": new_operation_id(), **_tag_of(reply), **reply.headers}
        return Response(body, reply.status, headers=headers, media_type="application/json")

    async def _answer(self, request: Request) -> Reply:
        path = _path(request)
        caller = await self._identify(request, path)
        query = {name.lower(): value for name, value in request.query_params.items()}
        refuse_version(query.get("api-version"))
        is_template = path.key == _DEPLOYMENTS
        raw = await _read_body(request, TEMPLATE_BYTES_MAX if is_template else BODY_BYTES_MAX)
        call = ArmCall(
            method=request.method,
            path=path,
            query=query,
            body=None if is_template else await self._parse_body(raw, caller),
            template=raw if is_template else b"",
            caller=caller,
            base_url=self.arm.control.public_url
            or f"{request.url.scheme}://{request.headers.get('host', '')}",
            if_match=_joined(request, "if-match"),
            if_none_match=_joined(request, "if-none-match"),
            why=request.headers.get("commandname", "")[:100],
        )
        return await self.arm.answer(call)

    async def _identify(self, request: Request, path: ResourcePath) -> Caller:
        try:
            return await self._dispatch.identify(request, role_of(request.method, path))
        except Problem as problem:
            if problem.status == 401 and "authorization" in request.headers:
                raise bad_token() from None
            raise

    async def _parse_body(self, raw: bytes, caller: Caller) -> Json | None:
        if len(raw) <= SMALL_BYTES:
            return read_json(raw, BODY_VALUES_MAX)

        async def given() -> AsyncIterator[bytes]:
            yield str(BODY_VALUES_MAX).encode()
            yield raw

        subprocesses = self.arm.control.subprocesses
        kind, answer = await subprocesses.run("arm", given, caller=caller.key)
        if kind != b"ok":
            raise not_understood(answer.decode())
        return object_in(answer)


async def _read_body(request: Request, bytes_max: int) -> bytes:
    """Returns the raw body. The bodies of GET, HEAD and DELETE are ignored, so they are empty."""
    if request.method in ("GET", "HEAD", "DELETE"):
        return b""
    return await read_all(request, bytes_max)


def _joined(request: Request, name: str) -> str:
    """Returns all values of a header, which a request may have several times."""
    return ", ".join(request.headers.getlist(name))


def _tag_of(reply: Reply) -> Mapping[str, str]:
    """Returns the ETag header of a reply whose body is a resource with a tag."""
    tag = reply.body.get("etag") if isinstance(reply.body, dict) else None
    return tag_header(tag) if isinstance(tag, str) else {}


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
    is_approval = (path.types or (path.tail,))[0].lower() in _APPROVALS
    is_maintenance = path.namespace == "Microsoft.Maintenance"
    return Role.APPROVER if is_maintenance and is_approval else Role.OPERATOR


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


class Router:
    """Finds and calls the handler of a request. Each module gives a table of its handlers."""

    def __init__(self, tables: Iterable[Routes]) -> None:
        self._handlers: dict[tuple[str, str, str], Handler] = {}
        for table in tables:
            for route, handler in table.items():
                assert route not in self._handlers, f"{route} is routed twice"
                self._handlers[route] = handler
        self._types = {key for _, key, _ in self._handlers}

    async def answer(self, arm: Arm, call: ArmCall) -> Reply:
        """Returns the handler's reply. Raises ArmError, Refused, Problem or StoreDown."""
        handler = self._handler(call)
        call = await _with_true_spelling(arm, call)
        location = str((call.body or {}).get("location") or "")[:100]
        today = datetime.now(UTC).date()
        refuse_unknown_version(call.path, call.api_version, location, today)
        call = with_known_members(call)
        refuse_tag_names(call.body)
        await refuse_region(arm, call)
        await refuse_locked(arm, call)
        return await handler(arm, call)

    def _handler(self, call: ArmCall) -> Handler:
        path = call.path
        method = "GET" if call.method == "HEAD" else call.method
        every = f"{path.namespace.lower()}/*"
        for key in (path.key, every):
            for route in ((call.method, key, path.tail), (method, key, path.tail)):
                if route in self._handlers:
                    return self._handlers[route]
        others = {m for m, k, t in self._handlers if k in (path.key, every) and t == path.tail}
        if others:
            raise ArmError(
                405,
                "MethodNotAllowed",
                f"The method {call.method} is not supported here; use {', '.join(sorted(others))}.",
                headers={"Allow": ", ".join(sorted(others))},
            )
        if path.types and path.tail and path.key in self._types:
            raise ArmError(
                404,
                "InvalidAction",
                f"The action '{path.tail}' is not supported on resource type '{path.type}'.",
            )
        known = any(key.split("/")[0] == path.namespace.lower() for key in self._types)
        type = "/".join((path.namespace, *path.types, path.tail)).rstrip("/")
        raise ArmError(
            404,
            "InvalidResourceType" if known else "InvalidResourceNamespace",
            f"Fairwarning does not serve {type[:200]}; see docs/azure.md.",
        )


async def _with_true_spelling(arm: Arm, call: ArmCall) -> ArmCall:
    """Returns the call with the subscription and the group spelled as they were created.

    Raises ArmError if one of them does not exist, or if a PUT or PATCH is sent to a group that is
    being deleted.
    """
    path = call.path
    if not path.subscription:
        return call
    subscription = spelled_subscription(arm, path.subscription)
    path = replace(path, subscription=subscription)
    if path.group and path.key != _GROUP:
        group = await get_group(arm, subscription, path.group)
        if call.method in ("PUT", "PATCH"):
            refuse_deleting(group)
        path = replace(path, group=group.name)
    if path.parent is not None:
        parent = replace(path.parent, subscription=subscription, group=path.group)
        path = replace(path, parent=parent)
    return replace(call, path=path)
