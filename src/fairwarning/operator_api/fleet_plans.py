"""Plans what a declared fleet changes: reads the document, compares, and checks rights.

How it works. `planned_frames` reads the document, compares it with the fleet, and checks the rules.
This is slow. So it runs in a thread if document and fleet are small, and otherwise in a process
(`subprocess_pool.py`). In both cases its result is a list of frames, which is decoded one frame at
a time, so that the event loop is never blocked for long.
"""

import asyncio
import pickle
from collections.abc import AsyncIterator, Iterator, Sequence
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
from fairwarning.operator_api.parse_request import decoded_json, decoded_text
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.route import Document

BATCH = 200  # Decoding so few at once does not hold up polls.
# A frame of a whole page would take 100 ms to pickle if each scope has 100 instances.
FRAME_INSTANCES = 1_000
# A thread holds up polls while it works, so larger documents go to a process.
SMALL_BYTES = 16 * 1024
SMALL_INSTANCES = 1_000  # A thread holds up polls while it works, so more go to a process.
SMALL_SCOPES = 1_000  # A thread holds up polls while it works, so more go to a process.
T = TypeVar("T")
R = TypeVar("R", Scope, Step)


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
    is_small = len(wish.document.body) <= SMALL_BYTES
    if is_small and len(control.views.ids()) <= SMALL_SCOPES:
        try:
            # A caller with too many plans is refused before the fleet is read for it.
            async with control.offload.turn():
                current = [scope async for page in _pages(control) for scope in page]
                frames = await asyncio.to_thread(_made_here, wish, current)
            return await _understood(frames)
        except TooManyInstances:
            pass  # The document is short but has many instances, so plan in a process.
    frames = await control.subprocesses.run(
        "fleet", lambda: _sent(control, wish), caller=wish.caller.key
    )
    return await _understood(frames)


def fleet_job(given: Iterator[bytes]) -> Iterator[bytes]:
    """Plan in a subprocess: the frames in are the wish and the scopes, those out are the plan."""
    wish: Wish = _loaded(next(given))
    current = [scope for page in given for scope in _loaded(page)]
    yield from planned_frames(wish, current, FLEET_INSTANCES_MAX)


def planned_frames(wish: Wish, current: Sequence[Scope], instances_max: int) -> Iterator[bytes]:
    """Yield the plan as frames. A Problem or Refused is yielded as a frame too.

    Raises TooManyInstances if the document has more than `instances_max` instances and this is
    below `FLEET_INSTANCES_MAX`.
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
    yield _frame(b"H", (list(found.kept), confirmation(found) or None, list(found.warnings)))
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


def steps_in(batch: bytes) -> Sequence[Step]:
    found: Sequence[Step] = _loaded(batch)
    return found


def scopes_in(batch: bytes) -> Sequence[Scope]:
    found: Sequence[Scope] = _loaded(batch)
    return found


async def _pages(control: Control) -> AsyncIterator[list[Scope]]:
    """Yield pages of all scopes, also of those without instances, because their ids are taken."""
    after: ScopeId | None = None
    while page := await control.store.scopes(after=after, limit=BATCH):
        yield page
        after = page[-1].id


async def _sent(control: Control, wish: Wish) -> AsyncIterator[bytes]:
    yield pickle.dumps(wish)
    async for page in _pages(control):
        for scopes in _small_batches(page):
            yield pickle.dumps(scopes)
            await asyncio.sleep(0)


def _made_here(wish: Wish, current: Sequence[Scope]) -> list[bytes]:
    return list(planned_frames(wish, current, SMALL_INSTANCES))


async def _understood(frames: Sequence[bytes]) -> Prepared:
    made = Prepared()
    for frame in frames:
        content = memoryview(frame)[1:]
        match frame[:1]:
            case b"P":
                status, code, detail, more = _loaded(content)
                raise Problem(status, code, detail, **more)
            case b"R":
                word, message = _loaded(content)
                raise Refused(Code(word), message)
            case b"H":
                made.kept, made.confirm, made.warnings = _loaded(content)
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
                text, wish.drivers, is_partial=not wish.prune, instances_max=instances_max
            )
        data = decoded_json(document.body)
        return read_json(data, wish.drivers, is_partial=not wish.prune, instances_max=instances_max)
    except FleetProblem as problem:
        if isinstance(problem, TooManyInstances) and instances_max < FLEET_INSTANCES_MAX:
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


def _loaded(content: bytes | memoryview) -> Any:
    return pickle.loads(content)  # noqa: S301  Only we ourselves write these.
