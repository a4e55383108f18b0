"""Plans what a declared fleet changes: reads the document, compares, and checks rights.

How it works. `planned_frames` reads the document, compares it with the fleet, and checks the rules.
This is slow. So it runs in a thread if document and fleet are small, and otherwise in a process
(`subprocess_pool.py`). In both cases its result is a list of frames, which is decoded one frame at
a time, so that the event loop is never blocked for long.
"""

import asyncio
import pickle
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import msgspec

from fairwarning.common.durations import format_iso_duration
from fairwarning.core.driver_settings import DriverCatalogue
from fairwarning.core.journal_text import listed as listed_names
from fairwarning.core.model import Scope, ScopeId
from fairwarning.core.refusals import Code, Refused
from fairwarning.fleet_file.model import Fleet, FleetChange, Plan, Step
from fairwarning.fleet_file.plan import confirmation, plan, refuse_existing, refuse_plan
from fairwarning.fleet_file.problems import FleetMistake, FleetProblem, TooManyInstances
from fairwarning.fleet_file.read import read_json, read_toml
from fairwarning.fleet_file.resources import FLEET_INSTANCES_MAX
from fairwarning.operator_api import schemas
from fairwarning.operator_api.auth import Caller, Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.declaration_rights import refuse_plan_of_operator
from fairwarning.operator_api.offload import unpickled
from fairwarning.operator_api.parse_request import decoded_json, decoded_text
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.route import Call, Document
from fairwarning.operator_api.spooled_bodies import SpooledBody
from fairwarning.operator_api.subprocess_pool import ProcessDied, process_died, started

BATCH = 200  # Decoding so few at once does not hold up polls.
# A frame of a whole page would take 100 ms to pickle if each scope has 100 instances.
FRAME_INSTANCES = 1_000
# A thread holds up polls while it works, so larger documents go to a process.
SMALL_BYTES = 16 * 1024
SMALL_INSTANCES = 1_000  # A thread holds up polls while it works, so more go to a process.
SMALL_SCOPES = 1_000  # A thread holds up polls while it works, so more go to a process.
STREAM_INSTANCES_MAX = 1_000_000
"""The largest fleet of a streamed request, which is also the largest that was measured."""
LARGE_TOML = 20
"""How many times the usual limit of keys and values a streamed file may have."""
T = TypeVar("T")
R = TypeVar("R", Scope, Step)
Q = TypeVar("Q", bound=schemas.RemoveQuery)


class Wish(NamedTuple):
    """A request to change the fleet."""

    document: Document
    prune: bool
    caller: Caller
    drivers: DriverCatalogue
    """The drivers that the document may name."""
    is_preview: bool = False
    """If true, the plan is not carried out, so the rules for refusals are not checked."""
    creates_only: bool = False
    without_notice: bool = False
    force: bool = False
    confirm: str | None = None
    has_reason: bool = False
    instances_max: int = FLEET_INSTANCES_MAX


def wish_of(control: Control, call: Call[Q, Any], document: Document, *, prune: bool) -> Wish:
    query = call.query
    return Wish(
        document=document,
        prune=prune,
        caller=call.caller,
        drivers=control.drivers,
        without_notice=query.without_notice,
        force=query.force,
        confirm=query.confirm,
        has_reason=bool(call.why),
    )


class Header(NamedTuple):
    """What is said of a plan before its changes."""

    kept: Sequence[str] = ()
    confirm: str | None = None
    warnings: Sequence[str] = ()
    scopes: int = 0
    """How many steps the plan has. Nearly always each is another scope."""


@dataclass(slots=True)
class Prepared:
    """A checked plan, ready to be carried out."""

    kept: list[str] = field(default_factory=list)
    confirm: str | None = None
    warnings: list[str] = field(default_factory=list)
    changes: list[schemas.FleetChange] = field(default_factory=list)
    declares: list[bytes] = field(default_factory=list)
    """Pickled batches of steps. Each batch is unpickled only when it is carried out."""
    creates: list[bytes] = field(default_factory=list)


async def prepare(control: Control, wish: Wish) -> Prepared:
    """Plan the requested change. Raises Problem, Refused or StoreDown."""
    frames = await _small_frames(control, wish)
    if frames is None:
        frames = await control.subprocesses.run(
            "fleet", lambda: _sent(control, wish), caller=wish.caller.key
        )
    return await _understood(frames)


async def frames_of_spooled(
    control: Control, wish: Wish, body: SpooledBody
) -> AsyncGenerator[bytes, None]:
    """Plan the document in `body`, and yield the frames of the plan while they are made.

    The first frame is the header, and comes after all checks. Raises Problem, Refused or StoreDown.
    """
    if body.size <= SMALL_BYTES:
        document = Document(b"".join([part async for part in body.parts()]), body.is_toml)
        frames = await _small_frames(control, wish._replace(document=document))
        if frames is not None:
            for frame in frames:
                _refuse_refused(frame)
                yield frame
            return
    async with control.subprocesses.turn(wish.caller.key), started("fleet") as process:
        try:
            async for sent in _sent(control, wish, body):
                await process.send(sent)
            await process.send(b"")
            while frame := await process.receive():
                _refuse_refused(frame)
                yield frame
        except ProcessDied:
            raise process_died() from None


async def _small_frames(control: Control, wish: Wish) -> list[bytes] | None:
    """Return the frames of a small plan, made in a thread, or None if the plan is not small."""
    if len(wish.document.body) > SMALL_BYTES or len(control.views.ids()) > SMALL_SCOPES:
        return None
    try:
        # A caller with too many plans is refused before the fleet is read for it.
        async with control.offload.turn():
            current = [scope async for page in _pages(control) for scope in page]
            return await asyncio.to_thread(_made_here, wish, current)
    except TooManyInstances:
        return None  # The document is short but has many instances, so plan in a process.


def fleet_job(given: Iterator[bytes]) -> Iterator[bytes]:
    """Make a plan in a subprocess, from the frames of `_sent`. Yield the frames of the plan."""
    wish: Wish = unpickled(next(given))
    parts: list[bytes] = []
    current: list[Scope] = []
    for frame in given:
        if frame[:1] == b"B":
            parts.append(frame[1:])
        else:
            current += unpickled(frame[1:])
    if parts:
        wish = wish._replace(document=Document(b"".join(parts), wish.document.is_toml))
    yield from planned_frames(wish, current, wish.instances_max)


def planned_frames(wish: Wish, current: Sequence[Scope], instances_max: int) -> Iterator[bytes]:
    """Yield the plan as frames. A Problem or Refused is yielded as a frame too.

    Raises TooManyInstances if the document has more than `instances_max` instances, and the wish
    allows more than that.
    """
    try:
        fleet = _read(wish, instances_max)
        if wish.creates_only:
            refuse_existing(current, fleet)
        found = plan(current, fleet, prune=wish.prune, without_notice=wish.without_notice)
        if not wish.is_preview:
            refuse_wish(wish, found, current)
    except Problem as problem:
        yield _frame(b"P", (problem.status, problem.code, problem.detail, problem.more))
        return
    except Refused as refused:
        yield _frame(b"R", (refused.code.value, refused.message))
        return
    count = len(found.declares) + len(found.creates)
    yield _frame(b"H", Header(found.kept, confirmation(found) or None, found.warnings, count))
    for changes in _batches(found.changes):
        yield b"C" + msgspec.json.encode([change_of(each) for each in changes])
    if wish.is_preview:
        return
    for steps in _small_batches(found.declares):
        yield _frame(b"D", steps)
    for scopes in _small_batches(found.creates):
        yield _frame(b"N", scopes)


def refuse_wish(wish: Wish, planned: Plan, current: Sequence[Scope]) -> None:
    """Check whether the plan may be carried out. Raises Problem or Refused."""
    refuse_plan_of_operator(wish.caller, planned, current)
    if wish.without_notice:
        _refuse_without_notice(wish, planned)
    refuse_plan(planned, force=wish.force)


def change_of(change: FleetChange) -> schemas.FleetChange:
    notice_ms = change.terminate_notice_ms
    return schemas.FleetChange(
        action=change.action,
        what=change.what,
        scope=change.scope,
        detail=change.detail,
        events=list(change.events),
        terminate_notice=None if notice_ms is None else format_iso_duration(notice_ms),
        without_notice=change.without_notice,
    )


def header_in(frame: bytes) -> Header:
    found: Header = unpickled(memoryview(frame)[1:])
    return found


def steps_in(batch: bytes) -> Sequence[Step]:
    found: Sequence[Step] = unpickled(batch)
    return found


def scopes_in(batch: bytes) -> Sequence[Scope]:
    found: Sequence[Scope] = unpickled(batch)
    return found


async def _pages(control: Control) -> AsyncIterator[list[Scope]]:
    """Yield pages of all scopes, also of those without instances, because their ids are taken."""
    after: ScopeId | None = None
    while page := await control.store.scopes(after=after, limit=BATCH):
        yield page
        after = page[-1].id


async def _sent(
    control: Control, wish: Wish, body: SpooledBody | None = None
) -> AsyncIterator[bytes]:
    """Yield the wish, then the parts of `body` if it is given, and then the scopes."""
    yield pickle.dumps(wish)
    if body is not None:
        async for part in body.parts():
            yield b"B" + part
    async for page in _pages(control):
        for scopes in _small_batches(page):
            yield b"S" + pickle.dumps(scopes)
            await asyncio.sleep(0)


def _made_here(wish: Wish, current: Sequence[Scope]) -> list[bytes]:
    return list(planned_frames(wish, current, SMALL_INSTANCES))


def _refuse_refused(frame: bytes) -> None:
    """Raises the Problem or Refused that the frame holds, if it holds one."""
    content = memoryview(frame)[1:]
    match frame[:1]:
        case b"P":
            status, code, detail, more = unpickled(content)
            raise Problem(status, code, detail, **more)
        case b"R":
            word, message = unpickled(content)
            raise Refused(Code(word), message)
        case _:
            pass


async def _understood(frames: Sequence[bytes]) -> Prepared:
    made = Prepared()
    for frame in frames:
        _refuse_refused(frame)
        content = memoryview(frame)[1:]
        match frame[:1]:
            case b"H":
                header = header_in(frame)
                made.kept, made.warnings = list(header.kept), list(header.warnings)
                made.confirm = header.confirm
            case b"C":
                made.changes += msgspec.json.decode(content, type=list[schemas.FleetChange])
            case b"D":
                made.declares.append(bytes(content))
            case _:
                made.creates.append(bytes(content))
        await asyncio.sleep(0)
    return made


def _read(wish: Wish, instances_max: int) -> Fleet:
    document = wish.document
    try:
        if document.is_toml:
            text = decoded_text(document.body)
            return read_toml(
                text,
                wish.drivers,
                is_partial=not wish.prune,
                instances_max=instances_max,
                size_factor=LARGE_TOML if wish.instances_max > FLEET_INSTANCES_MAX else 1,
            )
        data = decoded_json(document.body)
        return read_json(data, wish.drivers, is_partial=not wish.prune, instances_max=instances_max)
    except FleetProblem as problem:
        if isinstance(problem, TooManyInstances) and instances_max < wish.instances_max:
            raise
        raise Problem(
            422,
            "fleet-invalid",
            problem.message,
            line=problem.line,
            pointer=problem.pointer,
            problems=[_mistake_json(each) for each in problem.mistakes],
        ) from None


def _mistake_json(mistake: FleetMistake) -> dict[str, str | int]:
    found = {"detail": mistake.message, "line": mistake.line, "pointer": mistake.pointer}
    return {key: value for key, value in found.items() if value is not None}


def _refuse_without_notice(wish: Wish, planned: Plan) -> None:
    """Raises Problem unless an admin gives a reason and confirms which instances leave."""
    if wish.caller.role < Role.ADMIN:
        raise Problem(
            403,
            "without-notice-needs-admin",
            "only an admin may remove instances without their notice; leave withoutNotice out, "
            "and they leave by a Terminate event",
        )
    needed = confirmation(planned)
    if needed and not wish.has_reason:
        raise Problem(
            422,
            "reason-needed",
            "instances would leave without their notice, and the history is to say why; give a "
            "reason as ?why=",
        )
    if needed and wish.confirm != needed:
        names = [name for step in planned.declares for name in sorted(step.without_notice)]
        raise Problem(
            409,
            "preview-needed",
            f"{listed_names(names)} would leave at once, without a Terminate event; look at the "
            f"names, and if you mean it, ask again with confirm={needed}",
            instances=names,
            confirm=needed,
        )


def _batches(found: Sequence[T]) -> Iterator[Sequence[T]]:
    for first in range(0, len(found), BATCH):
        yield found[first : first + BATCH]


def _small_batches(found: Sequence[R]) -> Iterator[Sequence[R]]:
    """Yield batches of at most `BATCH` items, which end after `FRAME_INSTANCES` instances."""
    batch: list[R] = []
    instances = 0
    for each in found:
        batch.append(each)
        instances += len(each.roster.instances)
        if len(batch) == BATCH or instances >= FRAME_INSTANCES:
            yield batch
            batch, instances = [], 0
    if batch:
        yield batch


def _frame(kind: bytes, content: Any) -> bytes:
    return kind + pickle.dumps(content)
