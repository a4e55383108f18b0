"""The portal as routes of the control plane: pages, forms, static files, and the login."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from urllib.parse import parse_qs, quote

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import StoreDown
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.dispatch import Dispatch, as_problem, read_all
from fairwarning.operator_api.parse_request import BODY_BYTES_MAX
from fairwarning.operator_api.problems import Problem, of_stop
from fairwarning.operator_api.route import Route as ApiRoute
from fairwarning.portal.api import Api
from fairwarning.portal.layout import HEADERS, Layout
from fairwarning.portal.live_updates import Glance, changes
from fairwarning.portal.page_context import PageContext
from fairwarning.portal.scenario_runner import ScenarioRunner
from fairwarning.portal.sessions import Sessions
from fairwarning.portal.strings import english

Handler = Callable[[PageContext], Awaitable[Response]]
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Page:
    """One route: a page for GET, or the target of a form for POST if `sends` is true."""

    path: str
    handler: Handler
    sends: bool = False


class Portal:
    def __init__(
        self,
        control: Control,
        dispatch: Dispatch,
        api_routes: Sequence[ApiRoute],
        pages: Sequence[Page],
        *,
        needs_token: bool,
    ) -> None:
        self._control = control
        self._dispatch = dispatch
        self._sessions = Sessions(control, needs_token=needs_token)
        api = Api(control, api_routes)
        self._layout = Layout(api, self._sessions, english())
        self._scenario_runner = ScenarioRunner(api, dispatch.stopping)
        self._pages = pages

    def routes(self) -> list[BaseRoute]:
        return [
            *(self._route(page) for page in self._pages),
            *_ways_back(self._pages),
            Route("/login", self._log_in, methods=["GET", "POST"]),
            Route("/stream", self._stream, methods=["GET"]),
            Route("/logout", self._log_out, methods=["POST"]),
            Route("/static/{name}", _asset, methods=["GET"]),
            _UnknownPage("/{path:path}", self._unknown, methods=["GET"]),
        ]

    def _route(self, page: Page) -> Route:
        async def answer(request: Request) -> Response:
            try:
                return await self._answer(page, request)
            except asyncio.CancelledError:
                if not self._dispatch.is_stopping:
                    raise
                return await self._layout.bare("plain_problem.html", 503, problem=of_stop())

        return Route(page.path, answer, methods=["POST" if page.sends else "GET"])

    async def _answer(self, page: Page, request: Request) -> Response:
        context: PageContext | None = None
        try:
            caller = await self._sessions.caller(request)
            if caller is None:
                here = quote(request.url.path) if not page.sends else "/"
                return RedirectResponse(f"/login?next={here}", 303)
            fields: Fields = {}
            if page.sends:
                raw = await read_all(request, BODY_BYTES_MAX)
                fields = read_form(raw, request.headers.get("content-type", ""))
                self._sessions.refuse_forged(request, fields.get("form_key", [""])[0])
            context = PageContext(
                request=request,
                caller=caller,
                control=self._control,
                layout=self._layout,
                scenario_runner=self._scenario_runner,
                form=_given_once(fields),
                lists=fields,
            )
            return await page.handler(context)
        except Exception as error:
            return await self._failed(context, page, as_problem(error))

    async def _failed(self, context: PageContext | None, page: Page, problem: Problem) -> Response:
        if context is None:
            return await self._layout.bare("plain_problem.html", problem.status, problem=problem)
        if page.sends:
            return context.back(said=problem.detail, failed=True)
        return await context.show("problem.html", problem.status, problem=problem)

    async def _unknown(self, request: Request) -> Response:
        problem = Problem(404, "no-such-path", self._layout.t("problem.no-such-page"))
        title = self._layout.t("problem.no-such-page-title")
        return await self._layout.bare("plain_problem.html", 404, problem=problem, title=title)

    async def _stream(self, request: Request) -> Response:
        try:
            caller = await self._sessions.caller(request)
            if caller is None:
                return Response(status_code=401)
            is_allowed = partial(self._is_still_allowed, request)
            lines = changes(
                self._control, self._dispatch.stopping, is_allowed, self._glance(request)
            )
            return self._dispatch.open_streams.begin(caller, lines)
        except Problem as problem:
            return Response(status_code=problem.status, headers=problem.headers)

    async def _is_still_allowed(self, request: Request) -> bool:
        """Return whether the token is still valid. It may be revoked while its stream is open."""
        try:
            return await self._sessions.caller(request) is not None
        except StoreDown:
            return True

    def _glance(self, request: Request) -> Glance | None:
        """Return a function that returns another value after a change that is not in the journal.

        It is None if the page shows only what is in the journal.
        """
        control = self._control
        is_virtual = isinstance(control.clock, VirtualClock)
        if "rehearsal" in request.query_params:
            runner = self._scenario_runner
            return lambda: (control.clock.now() if is_virtual else 0, control.requests.count,
                            control.requests.left_s > 0, runner.glance())  # fmt: skip
        return control.clock.now if is_virtual else None

    async def _log_in(self, request: Request) -> Response:
        wanted = request.query_params.get("next", "/")
        # Only a path of this server is allowed: `//elsewhere` would lead to another server.
        onward = wanted if wanted.startswith("/") and not wanted.startswith("//") else "/"
        if not self._sessions.needs_token:
            return RedirectResponse(onward, 303)
        if request.method == "GET":
            return await self._layout.bare("login.html", failed=False, next=onward)
        try:
            # Otherwise another site could log a person in with a foreign token.
            self._sessions.refuse_foreign_page(request)
        except Problem as problem:
            return await self._layout.bare("plain_problem.html", problem.status, problem=problem)
        fields = read_form(await read_all(request, BODY_BYTES_MAX),
                           request.headers.get("content-type", ""))  # fmt: skip
        token = fields.get("token", [""])[0].strip()
        if await self._control.tokens.caller(token) is None:
            return await self._layout.bare("login.html", 401, failed=True, next=onward)
        response = RedirectResponse(onward, 303)
        self._sessions.log_in(request, response, token)
        return response

    async def _log_out(self, request: Request) -> Response:
        try:
            self._sessions.refuse_foreign_page(request)
        except Problem as problem:
            return await self._layout.bare("plain_problem.html", problem.status, problem=problem)
        response = RedirectResponse("/login", 303)
        self._sessions.log_out(response)
        return response


class _UnknownPage(Route):
    """Matches a browser's request that no other route matches. Programs get a JSON answer."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            accepted = Headers(scope=scope).get("accept", "")
            if "text/html" in accepted and not scope["path"].startswith("/api/"):
                return super().matches(scope)
        return Match.NONE, {}


def _given_once(fields: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {name: values[0] for name, values in fields.items() if values and values[0].strip()}


async def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    found = _assets().get(name)
    if found is None:
        return Response(status_code=404)
    headers = {
        **HEADERS,
        "Cache-Control": "public, max-age=31536000, immutable"
        if "v" in request.query_params
        else "no-cache",
    }
    return Response(found, media_type=_TYPES[name.rpartition(".")[2]], headers=headers)


@cache
def _assets() -> Mapping[str, bytes]:
    """Return the files of static/. They are few and small, and a page waits for them."""
    folder = files("fairwarning.portal") / "static"
    known = [each for each in folder.iterdir() if each.name.rpartition(".")[2] in _TYPES]
    return {each.name: each.read_bytes() for each in known}


def _ways_back(pages: Sequence[Page]) -> Iterator[Route]:
    """Yield routes that redirect a GET of a form's target to the page above it."""
    shown = {page.path for page in pages if not page.sends}
    for path in sorted({page.path for page in pages if page.sends} - shown):
        parts = path.split("/")
        above = next(end for end in range(len(parts), 0, -1) if "/".join(parts[:end]) in shown)
        yield Route(path, _way_back(len(parts) - above), methods=["GET"])


def _way_back(steps: int) -> Callable[[Request], Awaitable[Response]]:
    async def go(request: Request) -> Response:
        return RedirectResponse(quote(request.url.path.rsplit("/", steps)[0]), 303)

    return go


Fields = dict[str, list[str]]
FIELDS_MAX = 2_000  # A form with all offered scopes has fewer fields.


def read_form(raw: bytes, content_type: str) -> Fields:
    """Return the fields of a form's body. Raises Problem if it cannot be read as a form."""
    if content_type.partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise Problem(415, "media-type-unknown", "a page sends forms; programs use /api/v1")
    try:
        return parse_qs(
            raw.decode(), keep_blank_values=True, strict_parsing=False,
            max_num_fields=FIELDS_MAX, errors="strict",
        )  # fmt: skip
    except ValueError as problem:
        raise Problem(400, "form-malformed", f"the form cannot be read ({problem})") from None
