"""The journal, newest first, and the clock that its times come from."""

from fairwarning.control import hands, shapes
from fairwarning.control.access import Role
from fairwarning.control.context import Control
from fairwarning.control.names import find_past_scope
from fairwarning.control.operation import Call, Operation
from fairwarning.control.positions import checked_position
from fairwarning.control.problems import Problem
from fairwarning.control.reading import read_duration_ms
from fairwarning.control.rendering import entry_of
from fairwarning.core.instants import DAY_MS, format_rfc3339, later
from fairwarning.core.model import EventId
from fairwarning.engine.clocks import VirtualClock

ADVANCE_MS_MAX = 3_660 * DAY_MS
NOW_MS_MAX = 221_845_392_000_000


async def history(control: Control, call: Call[shapes.HistoryQuery, None]) -> shapes.Entries:
    query = call.query
    found = await control.store.history(
        before=None if query.after is None else await checked_position(control.store, query.after),
        scope_id=None if query.scope is None else await find_past_scope(control, query.scope),
        event_id=None if query.event is None else EventId(query.event.upper()),
        limit=query.limit,
    )
    return shapes.Entries(
        entries=[entry_of(each) for each in found],
        next=found[-1].position if len(found) == query.limit else None,
    )


async def clock(control: Control, call: Call[shapes.NoQuery, None]) -> shapes.ClockFace:
    return _face(control)


async def advance(control: Control, call: Call[shapes.NoQuery, shapes.Advance]) -> shapes.ClockFace:
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
        until = await hands.kept(control.store)
        if not call.was_done:
            until = later(max(clock.now(), until), by_ms)
            if until > NOW_MS_MAX:
                raise Problem(
                    422, "duration-invalid", "the clock ends with the year 9000", pointer="/by"
                )
            await hands.keep(until, control.store, by=call.by)
        await clock.advance_to(until)
        await clock.settle()
    return _face(control)


async def me(_: Control, call: Call[shapes.NoQuery, None]) -> shapes.Me:
    return shapes.Me(name=call.caller.name, role=call.caller.role.word)


def _face(control: Control) -> shapes.ClockFace:
    clock = control.clock
    return shapes.ClockFace(
        now=format_rfc3339(clock.now()),
        virtual=isinstance(clock, VirtualClock),
        speed=clock.speed if isinstance(clock, VirtualClock) else 1.0,
    )


OPERATIONS = (
    Operation(method="GET", path="/history", summary="What happened, newest first",
              role=Role.VIEWER, handle=history, query=shapes.HistoryQuery, answer=shapes.Entries),
    Operation(method="GET", path="/clock", summary="The server's time", role=Role.VIEWER,
              handle=clock, answer=shapes.ClockFace),
    Operation(method="POST", path="/clock/advance", summary="Move a virtual clock",
              role=Role.OPERATOR, handle=advance, body=shapes.Advance, answer=shapes.ClockFace),
    Operation(method="GET", path="/me", summary="Who you are to this server", role=Role.VIEWER,
              handle=me, answer=shapes.Me),
)  # fmt: skip
