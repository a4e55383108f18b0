"""Plans and replaces the fleet with an answer of many lines, for a fleet of any size.

The plan is made and checked in a process, from a body in a file. Its frames are carried out and
reported as they come, so the server never holds the whole body, plan or answer. Each line is one
JSON object: first the plan, then its changes, then how many scopes are done, and at last the
outcome.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from fairwarning.core.refusals import Refused
from fairwarning.engine.protocols import StoreDown
from fairwarning.fleet_file.apply import Execution
from fairwarning.operator_api import schemas
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.fleet_plans import (
    STREAM_INSTANCES_MAX,
    Header,
    Wish,
    frames_of_spooled,
    header_in,
    scopes_in,
    steps_in,
    wish_of,
)
from fairwarning.operator_api.problems import Problem, of_outage, of_refusal
from fairwarning.operator_api.route import Call, Document
from fairwarning.operator_api.spooled_bodies import SpooledBody


async def stream_plan(
    control: Control, call: Call[schemas.PlanQuery, SpooledBody]
) -> AsyncGenerator[schemas.FleetLine, None]:
    wish = Wish(
        document=Document(b"", call.body.is_toml),
        prune=True,
        caller=call.caller,
        drivers=control.drivers,
        is_preview=True,
        without_notice=call.query.without_notice,
        instances_max=STREAM_INSTANCES_MAX,
    )
    async with aclosing(frames_of_spooled(control, wish, call.body)) as frames:
        async for frame in frames:
            if frame[:1] == b"H":
                yield _plan_line(header_in(frame))
            else:
                yield _changes_line(frame)
    yield schemas.FleetLine(step="done")


async def stream_replacement(
    control: Control, call: Call[schemas.RemoveQuery, SpooledBody]
) -> AsyncGenerator[schemas.FleetLine, None]:
    """Replace the fleet. If the caller goes away, nothing more is done after the current batch."""
    wish = wish_of(control, call, Document(b"", call.body.is_toml), prune=True)
    wish = wish._replace(instances_max=STREAM_INSTANCES_MAX)
    execution = Execution(control.engine, force=wish.force, by=call.by, why=call.why)
    header = Header()
    async with aclosing(frames_of_spooled(control, wish, call.body)) as frames:
        try:
            async for frame in frames:
                match frame[:1]:
                    case b"H":
                        header = header_in(frame)
                        yield _plan_line(header)
                        continue
                    case b"C":
                        yield _changes_line(frame)
                        continue
                    case b"D":
                        await execution.declare(steps_in(frame[1:]))
                    case _:
                        await execution.create(scopes_in(frame[1:]))
                yield schemas.FleetLine(step="progress", done=execution.done, scopes=header.scopes)
        except (Problem, Refused, StoreDown) as error:
            if not execution.done:
                raise
            raise _partly_done(error, execution.done, header.scopes) from error
    yield schemas.FleetLine(
        step="done",
        done=execution.done,
        scopes=header.scopes,
        terminates=list(execution.terminates),
    )


def _plan_line(header: Header) -> schemas.FleetLine:
    return schemas.FleetLine(
        step="plan",
        scopes=header.scopes,
        kept=list(header.kept),
        confirm=header.confirm,
        warnings=list(header.warnings),
    )


def _changes_line(frame: bytes) -> schemas.FleetLine:
    changes = msgspec.json.decode(memoryview(frame)[1:], type=list[schemas.FleetChange])
    return schemas.FleetLine(step="changes", changes=changes)


def _partly_done(error: Problem | Refused | StoreDown, done: int, scopes: int) -> Problem:
    """Return the error with the number of scopes that were changed before it."""
    match error:
        case Problem():
            problem = error
        case Refused():
            problem = of_refusal(error)
        case _:
            problem = of_outage()
    return Problem(
        problem.status,
        problem.code,
        f"{done} of {scopes} scopes are done, and then: {problem.detail}; then send the file again "
        "to finish",
        done=done,
        scopes=scopes,
    )
