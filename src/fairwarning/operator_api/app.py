"""The control plane as one ASGI application, with the table of all routes."""

import re
import resource
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import msgspec
from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.routing import Route as HttpRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from fairwarning.azure_api.app import ArmApp
from fairwarning.azure_api.login import Login
from fairwarning.azure_api.routes import TABLES
from fairwarning.core.model import OperationKind
from fairwarning.engine.node_roles import NodeRole
from fairwarning.engine.protocols import call_limit_s
from fairwarning.operator_api.body_memory import BodyMemory
from fairwarning.operator_api.connection_limits import Connections
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.dispatch import Dispatch, as_problem, problem_response
from fairwarning.operator_api.health import Health
from fairwarning.operator_api.metrics import FaultMetrics, Metrics
from fairwarning.operator_api.openapi import PREFIX, document
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.route import Route
from fairwarning.operator_api.routes import (
    azure,
    clock,
    events,
    faults,
    fleet,
    history,
    notifications,
    requests,
    resources,
    rollouts,
    scale_sets,
    tokens,
)
from fairwarning.operator_api.stream import Streams

ROUTES: tuple[Route, ...] = (
    *fleet.ROUTES,
    *resources.ROUTES,
    *scale_sets.ROUTES,
    *events.ROUTES,
    *rollouts.ROUTES,
    *history.ROUTES,
    *clock.ROUTES,
    *faults.ROUTES,
    *requests.ROUTES,
    *tokens.ROUTES,
    *notifications.ROUTES,
    *azure.ROUTES,
)


class _NameConvertor(Convertor[str]):
    """Matches a name that may contain slashes, but not the verb that may follow it in the path."""

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


class _InstanceConvertor(_NameConvertor):
    regex = f"(?:(?!/(?:replace|{'|'.join(OperationKind)})$).)+"


class _ScopeConvertor(_NameConvertor):
    regex = r"(?:(?!/(?:scale/plan|scale|model|upgrade|policy)$).)+"


class _ResourceConvertor(_NameConvertor):
    regex = ".+"


register_url_convertor("resource", _ResourceConvertor())
register_url_convertor("instance", _InstanceConvertor())
register_url_convertor("scope", _ScopeConvertor())


class App:
    """The ASGI application with its metrics and connections. `stop` also ends its streams."""

    def __init__(
        self,
        control: Control,
        *,
        needs_token: bool,
        count_polls: Callable[[], Mapping[str, int]] = dict,
        pages: Callable[[Dispatch], Sequence[BaseRoute]] = lambda _: (),
        store_s_max: float | None = None,
    ) -> None:
        """`store_s_max` limits how long a request waits for each answer of a shared store."""
        self.metrics = Metrics(count_polls, lambda: control.engine.step_backs)
        self.metrics.registry.register(FaultMetrics(control.faults))
        dispatch = self._dispatch = Dispatch(control, self.metrics, needs_token=needs_token)
        self.connections = Connections(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        """The connections of all listeners together."""
        self._streams = Streams(control, dispatch)
        health = Health(control, dispatch, self.metrics).routes()
        if NodeRole.CONTROL not in control.roles:
            handlers = {HTTPException: _no_control_role, Exception: _broken}
            self.asgi = _limited(Starlette(routes=health, exception_handlers=handlers), store_s_max)
            return
        routed = Starlette(
            routes=[
                *health,
                HttpRoute(f"{PREFIX}/openapi.json", _openapi, methods=["GET"]),
                self._streams.route(PREFIX),
                *_http_routes(dispatch),
                *ArmApp(control, dispatch, TABLES).routes(),
                *Login(control, dispatch, needs_token=needs_token).routes(),
                *pages(dispatch),
            ],
            exception_handlers={HTTPException: _not_routed, Exception: _broken},
        )
        routed.router.redirect_slashes = False
        self.asgi = _limited(routed, store_s_max)

    def stop(self) -> None:
        self._dispatch.stopping.set()
        self._streams.stop()


def _limited(app: ASGIApp, store_s_max: float | None) -> ASGIApp:
    """Return the application with limits for the memory of bodies and for waits for the store."""

    async def limited(scope: Scope, receive: Receive, send: Send) -> None:
        before = call_limit_s.set(store_s_max)
        try:
            await app(scope, receive, send)
        finally:
            call_limit_s.reset(before)

    return BodyMemory(limited)


async def _openapi(_: Request) -> Response:
    return Response(_description(), media_type="application/json")


@cache
def _description() -> bytes:
    """Return the OpenAPI document. It is made at the first request, to keep the start fast."""
    return msgspec.json.encode(document(ROUTES))


def _http_routes(dispatch: Dispatch) -> list[HttpRoute]:
    """Return one route for each path, so that a wrong method is answered with the allowed ones."""
    by_path: dict[str, dict[str, Route]] = {}
    for route in ROUTES:
        by_path.setdefault(route.path, {})[route.method] = route
    return [_http_route(dispatch, path, routes) for path, routes in by_path.items()]


def _http_route(dispatch: Dispatch, path: str, routes: dict[str, Route]) -> HttpRoute:
    async def answer(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await dispatch.run(routes[method], request)

    named = re.sub(r"\{(\w+):path\}", r"{\1:\1}", path)
    return HttpRoute(PREFIX + named, answer, methods=[*routes])


async def _not_routed(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    problem = (
        Problem(
            404, "no-such-path", "there is nothing at this path; /api/v1/openapi.json lists all"
        )
        if error.status_code == 404
        else Problem(
            error.status_code, "method-not-allowed", "this path has other methods; see Allow"
        )
    )
    problem.headers.update(error.headers or {})
    return problem_response(problem)


async def _no_control_role(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem_response(
        Problem(
            404,
            "no-control-role",
            "this node has not the role control, so it has only /healthz, /readyz and /metrics; "
            "ask a node that was started with --role control",
        )
    )


async def _broken(_: Request, error: Exception) -> Response:
    return problem_response(as_problem(error))
