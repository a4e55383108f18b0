"""What a step does, read from its one deed. Every mistake is `Misplaced`."""

from collections.abc import Callable, Mapping

from fairwarning.common.durations import format_iso_duration
from fairwarning.core.faults import FaultKind
from fairwarning.core.model import ANNOUNCED_TYPES, EventType, OperationKind
from fairwarning.fleet_file.problems import Misplaced
from fairwarning.scenarios.model import (
    Approve,
    Cancel,
    ClearFaults,
    Deed,
    Expect,
    Json,
    Operate,
    Postpone,
    Schedule,
    SetFault,
    StartRollout,
)
from fairwarning.scenarios.toml_table import Table

_PHASES = ("scheduled", "started", "completed", "cancelled", "failed")
_ROLLOUT_PHASES = ("running", "paused", "completed", "failed", "cancelled")
_SCHEDULE_KEYS = (
    "type", "targets", "notice", "duration", "lasts", "description", "already-happened",
)  # fmt: skip
_POSTPONE_KEYS = ("event", "notice")
_EXPECT_KEYS = ("event", "rollout", "phase", "approved", "within")
_FAULT_KEYS = ("on", "count", "probability", "status", "delay", "for")
_ROLLOUT_KEYS = ("notice", "duration", "pause", "name", "description")


def _schedule(step: Table) -> Deed:
    table = _table(step, "schedule", _SCHEDULE_KEYS)
    deed = Schedule(
        type=table.choice("type", EventType, sorted(ANNOUNCED_TYPES)),
        targets=table.some_names("targets"),
        notice_ms=table.span_ms("notice"),
        duration_ms=table.span_ms("duration"),
        lasts_ms=table.span_ms("lasts"),
        description=table.text("description") if table.has("description") else None,
        already_happened=table.flag("already-happened"),
    )
    table.close()
    if deed.already_happened and deed.notice_ms is not None:
        message = "what already happened has no notice; leave `notice` out"
        raise Misplaced(table.at("notice"), message)
    return deed


def _operation(kind: OperationKind) -> Callable[[Table], Deed]:
    return lambda step: Operate(kind=kind, instance=step.needed(kind))


def _approve(step: Table) -> Deed:
    return Approve(event=step.needed("approve"))


def _cancel(step: Table) -> Deed:
    return Cancel(event=step.needed("cancel"), reason=step.text("reason"))


def _postpone(step: Table) -> Deed:
    table = _table(step, "postpone", _POSTPONE_KEYS)
    event, notice_ms = table.needed("event"), table.span_ms("notice")
    table.close()
    if notice_ms is None:
        raise Misplaced(table.path, '`notice` is missing; say for how long, as in "2h"')
    return Postpone(event=event, notice_ms=notice_ms)


def _fault(step: Table) -> Deed:
    table = _table(step, "fault", ("kind", "instances", *_FAULT_KEYS))
    deed = SetFault(
        kind=table.choice("kind", FaultKind),
        instances=table.names("instances"),
        more=_given(table, _FAULT_KEYS),
    )
    table.close()
    return deed


def _clear_faults(step: Table) -> Deed:
    if not step.flag("clear-faults"):
        raise Misplaced(step.at("clear-faults"), "`clear-faults` can only be true")
    return ClearFaults()


def _rollout(step: Table) -> Deed:
    table = _table(step, "rollout", ("type", "of", *_ROLLOUT_KEYS))
    types = (EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY)
    deed = StartRollout(
        type=table.choice("type", EventType, types),
        of=table.some_names("of"),
        more=_given(table, _ROLLOUT_KEYS),
    )
    table.close()
    return deed


def _expect(step: Table) -> Deed:
    table = _table(step, "expect", _EXPECT_KEYS)
    is_rollout = table.has("rollout")
    name = table.text("rollout") if is_rollout else table.needed("event")
    deed = Expect(
        name=name,
        is_rollout=is_rollout,
        phases=table.names("phase"),
        approved=None if is_rollout else _approved(table),
        within_ms=table.span_ms("within") or 0,
    )
    table.close()
    known = _ROLLOUT_PHASES if is_rollout else _PHASES
    for each in deed.phases:
        if each not in known:
            raise Misplaced(table.at("phase"), f"`{each}` is no phase; it may be {_or(known)}")
    if not deed.phases and deed.approved is None:
        raise Misplaced(table.path, "say what to expect: `phase`, `approved` or both")
    return deed


def _approved(table: Table) -> bool | str | None:
    value = table.raw("approved")
    if not isinstance(value, bool | str | None):
        message = "`approved` must be true, false or the name of an instance"
        raise Misplaced(table.at("approved"), message)
    return value


def _table(step: Table, key: str, keys: tuple[str, ...]) -> Table:
    return Table(step.raw(key), step.at(key), keys)


def _given(table: Table, keys: tuple[str, ...]) -> Json:
    """Values that the server reads and checks, by names that both use."""
    return {key: table.raw(key) for key in keys if table.has(key)}


def _or(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


DEEDS: Mapping[str, Callable[[Table], Deed]] = {
    "schedule": _schedule,
    **{str(kind): _operation(kind) for kind in OperationKind},
    "approve": _approve,
    "cancel": _cancel,
    "postpone": _postpone,
    "fault": _fault,
    "clear-faults": _clear_faults,
    "rollout": _rollout,
    "expect": _expect,
}


# Deeds as requests of the operator API, and in words. Pure.
def schedule_body(deed: Schedule) -> Json:
    spans = {"notice": deed.notice_ms, "duration": deed.duration_ms, "lasts": deed.lasts_ms}
    body: Json = {"type": deed.type, "targets": list(deed.targets)}
    body |= {key: format_iso_duration(ms) for key, ms in spans.items() if ms is not None}
    if deed.description is not None:
        body["description"] = deed.description
    if deed.already_happened:
        body["alreadyHappened"] = True
    return body


def fault_body(deed: SetFault) -> Json:
    return {"kind": deed.kind, "instances": list(deed.instances), **deed.more}


def rollout_body(deed: StartRollout, scopes: list[str]) -> Json:
    return {"type": deed.type, "scopes": scopes, **deed.more}


def in_words(deed: Deed | None) -> str:
    """Short, for the line of its step."""
    match deed:
        case Schedule():
            return f"schedule {deed.type} {' '.join(deed.targets)}"
        case Operate():
            return f"{deed.kind} {deed.instance}"
        case Approve():
            return f"approve {deed.event}"
        case Cancel():
            return f"cancel {deed.event}"
        case Postpone():
            return f"postpone {deed.event}"
        case SetFault():
            return f"fault {deed.kind} {' '.join(deed.instances)}".rstrip()
        case ClearFaults():
            return "clear faults"
        case StartRollout():
            return f"rollout {deed.type} of {' '.join(deed.of)}"
        case Expect():
            return f"expect {expectation(deed)}"
        case None:
            return ""


def expectation(deed: Expect) -> str:
    """`reboot to be started, approved by web-0`."""
    parts = [f"to be {' or '.join(deed.phases)}"] if deed.phases else []
    if isinstance(deed.approved, str):
        parts.append(f"approved by {deed.approved}")
    elif deed.approved is not None:
        parts.append("approved" if deed.approved else "approved by nobody")
    return f"{deed.name} {', '.join(parts)}"
