"""The routes for monitoring: /healthz, /readyz and /metrics."""

import asyncio
import hashlib

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from fairwarning.core.model import ENGINE
from fairwarning.engine.engine_presence import NO_ENGINE
from fairwarning.engine.protocols import SchemaTooNew, StoreDown
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.dispatch import Dispatch, as_problem, problem_response
from fairwarning.operator_api.metrics import Metrics
from fairwarning.operator_api.problems import Problem, of_outage, of_outdated

READY_S_MAX = 5  # A store that takes longer to write cannot keep notices.
WRITE_EVERY_S = 5.0
"""The shortest time between two test writes. It limits the load that callers can cause."""
FIGURES_S_MAX = 2  # Prometheus waits ten seconds by default.
READER_KNOWN_S = 3_600  # Metrics are needed most during an outage of the store.
READERS_MAX = 100  # More than the monitoring of any team has.
KIND, KEY = "readiness", "last-write"
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Health:
    def __init__(self, control: Control, dispatch: Dispatch, metrics: Metrics) -> None:
        self._control = control
        self._dispatch = dispatch
        self._metrics = metrics
        self._trying = asyncio.Lock()
        self._tried_s = float("-inf")
        self._problem: Problem | None = None
        """Why the last test write failed. It is None if it succeeded."""
        self._readers: dict[bytes, float] = {}
        """Maps the hash of each token to the time when it was last allowed to read the metrics."""

    def routes(self) -> list[Route]:
        return [
            Route("/healthz", self._healthz, methods=["GET"]),
            Route("/readyz", self._readyz, methods=["GET"]),
            Route("/metrics", self._metrics_text, methods=["GET"]),
        ]

    async def _healthz(self, _: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _readyz(self, _: Request) -> Response:
        problem = await self._last_problem()
        if problem is not None:
            return problem_response(problem)
        watch = self._control.engine_watch
        lacks_engine = watch is not None and not watch.is_running
        ready = f"ready, but {NO_ENGINE}\n" if lacks_engine else "ready\n"
        warnings = self._control.store.condition.warnings
        return PlainTextResponse("".join([ready, *(f"warning: {w}\n" for w in warnings)]))

    async def _last_problem(self) -> Problem | None:
        """Return why the last test write failed, or None. If it is too old, do a new one first."""
        async with self._trying:
            if _now_s() - self._tried_s >= WRITE_EVERY_S:
                self._problem = await self._write()
                self._tried_s = _now_s()
            return self._problem

    async def _write(self) -> Problem | None:
        """Do a test write. A store that can be read may still be read-only."""
        try:
            async with asyncio.timeout(READY_S_MAX):
                await self._control.store.keep(KIND, KEY, "{}", by=ENGINE)
        except SchemaTooNew:
            return of_outdated()
        except (StoreDown, TimeoutError):
            return of_outage()
        return None

    async def _metrics_text(self, request: Request) -> Response:
        try:
            await self._check_reader(request)
        except Exception as error:
            return problem_response(as_problem(error))
        try:
            async with asyncio.timeout(FIGURES_S_MAX):
                can_write = await self._last_problem() is None
        except TimeoutError:
            can_write = False
        control = self._control
        text = await self._metrics.render(
            control.store,
            control.engine,
            FIGURES_S_MAX,
            can_write=can_write,
            has_engine=control.engine_watch is None or control.engine_watch.is_running,
        )
        return Response(text, media_type=_TEXT)

    async def _check_reader(self, request: Request) -> None:
        """Raises Problem if the caller may not read the metrics.

        While the store is down, tokens that were allowed in the last hour are accepted, and others
        raise StoreDown.
        """
        given = hashlib.sha256(request.headers.get("authorization", "").encode()).digest()
        try:
            async with asyncio.timeout(FIGURES_S_MAX):
                await self._dispatch.identify(request, Role.VIEWER)
        except (StoreDown, TimeoutError) as outage:
            if _now_s() - self._readers.get(given, float("-inf")) > READER_KNOWN_S:
                raise StoreDown("nobody's token can be looked up") from outage
        else:
            self._readers.pop(given, None)
            self._readers[given] = _now_s()
            while len(self._readers) > READERS_MAX:
                del self._readers[next(iter(self._readers))]


def _now_s() -> float:
    return asyncio.get_running_loop().time()
