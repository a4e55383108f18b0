"""The routes that record the requests of test instances for a while, and list them."""

from msgspec import field

from fairwarning.core.faults import FaultKind
from fairwarning.core.instants import HOUR_MS, format_rfc3339
from fairwarning.engine.request_log import Request
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.parse_request import read_duration_ms
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.route import Call, Route
from fairwarning.operator_api.schemas import Done, DurationText, In, NoQuery, Out

WATCH_MS_MAX = HOUR_MS


class RequestOut(Out):
    at: str
    scope: str
    instance: str
    kind: str
    """`events`, `approve`, `instance` or `versions`."""
    version: str
    agent: str
    events: list[str]
    """The ids of the events that the request approves."""
    fault: FaultKind | None
    """The kind of the injected fault that answered the request; null without one."""
    hint: str
    """Why the request was refused and what an operator can do; empty if it was not refused."""


class RequestList(Out):
    watching_seconds: int
    """For how many more seconds requests are recorded; 0 if they are not recorded."""
    requests: list[RequestOut]


async def list_requests(control: Control, _: Call[NoQuery, None]) -> RequestList:
    return _list(control)


class WatchBody(In):
    for_: DurationText = field(default="10m", name="for")


async def watch_requests(control: Control, call: Call[NoQuery, WatchBody]) -> RequestList:
    for_ms = read_duration_ms("for", call.body.for_)
    if not 0 < for_ms <= WATCH_MS_MAX:
        raise Problem(422, "duration-invalid", "watch for up to an hour at once", pointer="/for")
    if not control.views.has_test_scope():
        raise Problem(
            409,
            "not-a-test-fleet",
            "no scope here is marked `test = true`, and only requests of test fleets are noted",
        )
    control.requests.watch(for_ms / 1000)
    return _list(control)


async def unwatch_requests(control: Control, _: Call[NoQuery, None]) -> Done:
    control.requests.stop()
    return Done()


def _list(control: Control) -> RequestList:
    return RequestList(
        watching_seconds=round(control.requests.left_s),
        requests=[_to_schema(each) for each in control.requests.list()],
    )


def _to_schema(request: Request) -> RequestOut:
    return RequestOut(
        at=format_rfc3339(request.at_ms),
        scope=request.scope_id,
        instance=request.instance,
        kind=request.kind,
        version=request.version,
        agent=request.agent,
        events=list(request.events),
        fault=request.fault,
        hint=request.hint,
    )


ROUTES = (
    Route(method="GET", path="/requests", summary="What instances of test fleets asked lately",
          role=Role.VIEWER, handle=list_requests, answer=RequestList),
    Route(method="POST", path="/requests/watch", summary="Note what instances ask, for a while",
          role=Role.OPERATOR, handle=watch_requests, body=WatchBody, is_body_optional=True,
          answer=RequestList),
    Route(method="DELETE", path="/requests/watch", summary="Note it no longer", role=Role.OPERATOR,
          handle=unwatch_requests, answer=Done),
)  # fmt: skip
