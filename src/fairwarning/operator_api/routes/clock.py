"""The routes of the server's clock: everybody may read it, and a virtual one can be moved.

The time of a virtual clock is stored, so that a restart does not set it back.
"""

import msgspec

from fairwarning.core.instants import DAY_MS, Instant, format_rfc3339, later
from fairwarning.core.model import Actor
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Store
from fairwarning.operator_api import schemas
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.parse_request import read_duration_ms
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.route import Call, Route

# Ten years: every timer of ten years fires in order, which takes time.
ADVANCE_MS_MAX = 3_660 * DAY_MS
NOW_MS_MAX = 221_845_392_000_000
"""The latest time of the virtual clock: 9000-01-01T00:00:00Z."""

_KIND, _KEY = "clock", "virtual"


async def get_clock(control: Control, call: Call[schemas.NoQuery, None]) -> schemas.ClockState:
    return _to_schema(control)


async def advance_clock(
    control: Control, call: Call[schemas.NoQuery, schemas.Advance]
) -> schemas.ClockState:
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
        # The new time is stored first, so that a repeated request does not move the clock twice.
        until = await load_position(control.store)
        if not call.was_done:
            until = later(max(clock.now(), until), by_ms)
            if until > NOW_MS_MAX:
                raise Problem(
                    422, "duration-invalid", "the clock ends with the year 9000", pointer="/by"
                )
            await save_position(until, control.store, by=call.by)
        await clock.advance_to(until)
        await clock.settle()
    return _to_schema(control)


def _to_schema(control: Control) -> schemas.ClockState:
    clock = control.clock
    return schemas.ClockState(
        now=format_rfc3339(clock.now()),
        virtual=isinstance(clock, VirtualClock),
        speed=clock.speed if isinstance(clock, VirtualClock) else 1.0,
    )


async def resume_clock(clock: VirtualClock, store: Store) -> None:
    """Set the clock to the stored time, if that is later than the clock's time."""
    newest = await store.history(limit=1)
    position = max([await load_position(store), *(entry.at_ms for entry in newest)])
    clock.step(max(0, position - clock.now()))


async def load_position(store: Store) -> Instant:
    """Return the stored time, or 0 if none is stored."""
    record = await store.record(_KIND, _KEY)
    return Instant(msgspec.json.decode(record.body, type=int) if record else 0)


async def save_position(now: Instant, store: Store, *, by: Actor) -> None:
    await store.keep(_KIND, _KEY, msgspec.json.encode(now).decode(), by=by)


ROUTES = (
    Route(method="GET", path="/clock", summary="The server's time", role=Role.VIEWER,
          handle=get_clock, answer=schemas.ClockState),
    Route(method="POST", path="/clock/advance", summary="Move a virtual clock", role=Role.OPERATOR,
          handle=advance_clock, body=schemas.Advance, answer=schemas.ClockState),
)  # fmt: skip
