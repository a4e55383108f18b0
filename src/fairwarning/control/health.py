"""Whether the process lives, whether it can serve, and its figures."""

import asyncio

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from fairwarning.control.access import Role
from fairwarning.control.context import Control
from fairwarning.control.dispatch import Dispatch, as_problem, problem_response
from fairwarning.control.metrics import Metrics
from fairwarning.control.problems import of_outage
from fairwarning.engine.ports import StoreDown

READY_S_MAX = 5
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


def routes(control: Control, dispatch: Dispatch, metrics: Metrics) -> list[Route]:
    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        try:
            async with asyncio.timeout(READY_S_MAX):
                await control.store.end()
        except (StoreDown, TimeoutError):
            return problem_response(of_outage())
        return PlainTextResponse("ready\n")

    async def figures(request: Request) -> Response:
        try:
            await dispatch.identify(request, Role.VIEWER)
            body = await metrics.render(control.store, control.clock)
        except Exception as error:
            return problem_response(as_problem(error))
        return Response(body, media_type=_TEXT)

    return [
        Route("/healthz", healthz, methods=["GET"]),
        Route("/readyz", readyz, methods=["GET"]),
        Route("/metrics", figures, methods=["GET"]),
    ]
