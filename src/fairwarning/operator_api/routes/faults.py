"""The routes of injected faults, which only test fleets can have.

Faults are only in the memory of this node. The history says who set and cleared which fault.
"""

from typing import Annotated, Literal

from msgspec import Meta, field

from fairwarning.common.durations import format_iso_duration
from fairwarning.core.faults import COUNT_MAX, DELAY_MS_MAX, DOCUMENT_KINDS, Fault, FaultKind, Part
from fairwarning.core.instants import Instant, format_optional, later
from fairwarning.core.model import InstanceName
from fairwarning.core.transitions import Noted
from fairwarning.engine.active_faults import NoFaultsHere, TooManyFaults
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.parse_request import read_duration_ms, read_instant
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.resolve_names import find_instance
from fairwarning.operator_api.route import Call, Route
from fairwarning.operator_api.schemas import Done, DurationText, In, InstantText, Name, NoQuery, Out

KIND, KEY = "fault", "last"
"""The record that is written with each history entry, because an entry needs a record."""
_SLOW = (FaultKind.SLOW, FaultKind.SLOW_BODY)


class FaultOut(Out):
    id: str
    kind: FaultKind
    instances: list[str]
    on: Part
    count: int | None
    probability: float
    status: int | None
    """The HTTP status of the kind `status`; null for other kinds."""
    delay: str | None
    """The delay of the slow kinds; null for other kinds."""
    from_: str | None = field(name="from")
    until: str | None
    hits: int


class FaultList(Out):
    faults: list[FaultOut]


async def list_faults(control: Control, _: Call[NoQuery, None]) -> FaultList:
    return FaultList(faults=[_to_schema(each) for each in control.faults.list()])


class FaultBody(In):
    kind: FaultKind
    instances: Annotated[list[Name], Meta(max_length=100)] = []
    on: Part = Part.POLL
    count: Annotated[int, Meta(ge=1, le=COUNT_MAX)] | None = None
    probability: Annotated[float, Meta(gt=0, le=1)] = 1.0
    status: Literal[410, 429, 500, 503] = 503
    delay: DurationText = "5s"
    from_: InstantText | None = field(default=None, name="from")
    until: InstantText | None = None
    for_: DurationText | None = field(default=None, name="for")


async def create_fault(control: Control, call: Call[NoQuery, FaultBody]) -> FaultOut:
    wanted = _fault(control, call.body)
    try:
        fault = control.faults.set(wanted)
    except TooManyFaults as problem:
        raise Problem(409, "too-many-faults", str(problem)) from None
    except NoFaultsHere as problem:
        raise Problem(409, "no-faults-here", str(problem)) from None
    note = Noted(subject=f"fault:{fault.id}", action="set", detail=describe_fault(fault))
    try:
        await _keep(control, call, note)
    except BaseException:
        # A fault that is not in the history would be mistaken for an outage, so clear it.
        control.faults.clear(fault.id)
        raise
    return _to_schema(fault)


async def delete_fault(control: Control, call: Call[NoQuery, None]) -> Done:
    id = call.path["id"]
    if all(each.id != id for each in control.faults.list()):
        raise Problem(
            404, "unknown-fault", "there is no such fault, or it is over; list them to see the ids"
        )
    # The history is written first: if that fails, the fault stays as it was.
    await _keep(control, call, Noted(subject=f"fault:{id}", action="cleared"))
    control.faults.clear(id)
    return Done()


async def _keep(
    control: Control, call: Call[NoQuery, FaultBody] | Call[NoQuery, None], note: Noted
) -> None:
    await control.store.keep(KIND, KEY, "{}", note=note, by=call.by, why=call.why)


class Cleared(Out):
    cleared: int


async def delete_all_faults(control: Control, call: Call[NoQuery, None]) -> Cleared:
    known = [each.id for each in control.faults.list()]
    if known:
        await _keep(control, call, Noted(subject="fault:all", action="cleared"))
    # Faults that were set meanwhile stay, because their history entries are newer.
    return Cleared(cleared=sum(control.faults.clear(id) for id in known))


def describe_fault(fault: Fault) -> str:
    """Return text like `status 500 on poll of web-0, 3 times`."""
    what = f"{fault.kind} {fault.status}" if fault.kind is FaultKind.STATUS else str(fault.kind)
    whom = ", ".join(fault.instances) or "every instance of a test fleet"
    often = "" if fault.count is None else f", {fault.count} times"
    chance = "" if fault.probability == 1 else f", with probability {fault.probability:g}"
    until = "" if fault.until_ms is None else f", until {format_optional(fault.until_ms)}"
    return f"{what} on {fault.on} of {whom}{often}{chance}{until}"


def _fault(control: Control, body: FaultBody) -> Fault:
    delay_ms = read_duration_ms("delay", body.delay)
    if delay_ms > DELAY_MS_MAX:
        longest = format_iso_duration(DELAY_MS_MAX)
        raise _refused(f"a delay is at most {longest}; choose less", "/delay")
    if body.kind in DOCUMENT_KINDS and body.on in (Part.APPROVE, Part.INSTANCE):
        raise _refused(f"{body.kind} is about what a poll reads; leave `on` out", "/on")
    starts, ends = _window(control, body)
    return Fault(
        id="",
        kind=body.kind,
        instances=_instances(control, body.instances),
        on=body.on,
        count=body.count,
        probability=body.probability,
        from_ms=starts,
        until_ms=ends,
        status=body.status,
        delay_ms=delay_ms,
    )


def _window(control: Control, body: FaultBody) -> tuple[Instant | None, Instant | None]:
    starts = None if body.from_ is None else read_instant("from", body.from_)
    begins = max(control.clock.now(), starts or Instant(0))
    if body.for_ is not None:
        if body.until is not None:
            raise _refused("`until` and `for` say the same; give one of them", "/for")
        for_ms = read_duration_ms("for", body.for_)
        if not for_ms:
            raise _refused("a fault for no time never strikes; give it longer", "/for")
        return starts, later(begins, for_ms)
    ends = None if body.until is None else read_instant("until", body.until)
    if ends is not None and ends <= begins:
        raise _refused("`until` is over before the fault begins; choose a later time", "/until")
    return starts, ends


def _instances(control: Control, names: list[str]) -> tuple[InstanceName, ...]:
    if not names and not control.views.has_test_scope():
        raise Problem(
            409,
            "not-a-test-fleet",
            "no scope here is marked `test = true`, and faults are for test fleets only",
        )
    found = [find_instance(control.views, each) for each in names]
    for scope_id, name in found:
        members = control.views.by_name(name)
        if not any(each.view.is_test and each.view.scope_id == scope_id for each in members):
            raise Problem(
                409,
                "not-a-test-fleet",
                f"instance {name!r} is not in a test fleet; mark its scope `test = true` first, "
                "or choose another instance",
            )
    return tuple(dict.fromkeys(name for _, name in found))


def _refused(text: str, pointer: str) -> Problem:
    return Problem(422, "fault-invalid", text, pointer=pointer)


def _to_schema(fault: Fault) -> FaultOut:
    return FaultOut(
        id=fault.id,
        kind=fault.kind,
        instances=list(fault.instances),
        on=fault.on,
        count=fault.count,
        probability=fault.probability,
        status=fault.status if fault.kind is FaultKind.STATUS else None,
        delay=format_iso_duration(fault.delay_ms) if fault.kind in _SLOW else None,
        from_=format_optional(fault.from_ms),
        until=format_optional(fault.until_ms),
        hits=fault.hits,
    )


ROUTES = (
    Route(method="GET", path="/faults", summary="Faults that are set on the endpoint",
          role=Role.VIEWER, handle=list_faults, answer=FaultList),
    Route(method="POST", path="/faults", summary="Make the endpoint misbehave", role=Role.OPERATOR,
          handle=create_fault, body=FaultBody, answer=FaultOut, status=201, is_in_steps=True),
    Route(method="DELETE", path="/faults/{id}", summary="Clear a fault", role=Role.OPERATOR,
          handle=delete_fault, answer=Done),
    Route(method="DELETE", path="/faults", summary="Clear all faults", role=Role.OPERATOR,
          handle=delete_all_faults, answer=Cleared),
)  # fmt: skip
