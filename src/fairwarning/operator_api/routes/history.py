"""The journal, newest first, and the clock that its times come from."""

from fairwarning.core.instants import DAY_MS, format_rfc3339, later
from fairwarning.core.model import EventId
from fairwarning.engine.clocks import VirtualClock
from fairwarning.operator_api import clock_position, schemas
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.parse_request import checked_position, read_duration_ms
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.resolve_names import find_past_scope
from fairwarning.operator_api.route import Call, Operation
from fairwarning.operator_api.to_schema import entry_of

ADVANCE_MS_MAX = 3_660 * DAY_MS
NOW_MS_MAX = 221_845_392_000_000


async def history(control: Control, call: Call[schemas.HistoryQuery, None]) -> schemas.Entries:
    query = call.query
    found = await control.store.history(
        before=None if query.after is None else await checked_position(control.store, query.after),
        scope_id=None if query.scope is None else await find_past_scope(control, query.scope),
        event_id=None if query.event is None else EventId(query.event.upper()),
        limit=query.limit,
    )
    return schemas.Entries(
        entries=[entry_of(each) for each in found],
        next=found[-1].position if len(found) == query.limit else None,
    )


async def clock(control: Control, call: Call[schemas.NoQuery, None]) -> schemas.ClockFace:
    return _face(control)


async def advance(
    control: Control, call: Call[schemas.NoQuery, schemas.Advance]
) -> schemas.ClockFace:
    if not isinstance(control.clock, VirtualClock):
        raise Problem(
            409,
            "clock-is-real",
            "this server runs on the real clock; start it with --clock virtual to move time",
        )
    by_ms = read_duration_ms("by", call.body.by)
    clock = control.clock
    if by_ms > ADVANCE_MS_MAX:
        raise Problem(422, "duration-invalid", "advance at most ten years at once", pointer="/by")
    async with control.advancing:
        # Where the clock is to stand is stored first, so that a try that broke off moves it once.
        until = await clock_position.kept(control.store)
        if not call.was_done:
            until = later(max(clock.now(), until), by_ms)
            if until > NOW_MS_MAX:
                raise Problem(
                    422, "duration-invalid", "the clock ends with the year 9000", pointer="/by"
                )
            await clock_position.keep(until, control.store, by=call.by)
        await clock.advance_to(until)
        await clock.settle()
    return _face(control)


async def me(_: Control, call: Call[schemas.NoQuery, None]) -> schemas.Me:
    return schemas.Me(name=call.caller.name, role=call.caller.role.word)


def _face(control: Control) -> schemas.ClockFace:
    clock = control.clock
    return schemas.ClockFace(
        now=format_rfc3339(clock.now()),
        virtual=isinstance(clock, VirtualClock),
        speed=clock.speed if isinstance(clock, VirtualClock) else 1.0,
    )


OPERATIONS = (
    Operation(method="GET", path="/history", summary="What happened, newest first",
              role=Role.VIEWER, handle=history, query=schemas.HistoryQuery, answer=schemas.Entries),
    Operation(method="GET", path="/clock", summary="The server's time", role=Role.VIEWER,
              handle=clock, answer=schemas.ClockFace),
    Operation(method="POST", path="/clock/advance", summary="Move a virtual clock",
              role=Role.OPERATOR, handle=advance, body=schemas.Advance, answer=schemas.ClockFace),
    Operation(method="GET", path="/me", summary="Who you are to this server", role=Role.VIEWER,
              handle=me, answer=schemas.Me),
)  # fmt: skip
