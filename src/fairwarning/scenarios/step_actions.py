"""Reads the action of a step, and makes the request body of the operator API from it."""

from collections.abc import Callable, Mapping

from fairwarning.common.durations import format_iso_duration
from fairwarning.core.faults import FaultKind
from fairwarning.core.model import ANNOUNCED_TYPES, EventType, OperationKind
from fairwarning.scenarios.model import (
    Action,
    Approve,
    Cancel,
    ClearFaults,
    Expect,
    Json,
    Operate,
    Postpone,
    Schedule,
    SetFault,
    StartRollout,
)
from fairwarning.scenarios.scenario_table import ScenarioTable

_PHASES = ("scheduled", "started", "completed", "cancelled", "failed")
_ROLLOUT_PHASES = ("running", "paused", "completed", "failed", "cancelled")
_SCHEDULE_KEYS = (
    "type", "targets", "notice", "duration", "lasts", "description", "already-happened",
)  # fmt: skip
_POSTPONE_KEYS = ("event", "notice")
_EXPECT_KEYS = ("event", "rollout", "phase", "approved", "within")
_FAULT_KEYS = ("on", "count", "probability", "status", "delay", "for")
_ROLLOUT_TYPES = (EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY)
_ROLLOUT_KEYS = ("notice", "duration", "pause", "name", "description")
ReadAction = Callable[[ScenarioTable], Action | None]
"""Reads an action from its step. It notes mistakes, and returns None if there is no action."""


def _schedule(step: ScenarioTable) -> Action | None:
    table = step.inner("schedule", _SCHEDULE_KEYS)
    if table is None:
        return None
    type = table.choice("type", EventType, sorted(ANNOUNCED_TYPES))
    targets = table.names("targets", needed=True)
    notice_ms = table.duration_ms("notice")
    duration_ms, lasts_ms = table.duration_ms("duration"), table.duration_ms("lasts")
    description = table.text("description") if table.has("description") else None
    already_happened = table.flag("already-happened")
    table.close()
    if already_happened and notice_ms is not None:
        table.wrong("notice", "what already happened has no notice; leave `notice` out")
    if type is None:
        return None
    return Schedule(
        type=type,
        targets=targets,
        notice_ms=notice_ms,
        duration_ms=duration_ms,
        lasts_ms=lasts_ms,
        description=description,
        already_happened=already_happened,
    )


def _operation(kind: OperationKind) -> ReadAction:
    return lambda step: Operate(kind=kind, instance=step.needed(kind))


def _postpone(step: ScenarioTable) -> Action | None:
    table = step.inner("postpone", _POSTPONE_KEYS)
    if table is None:
        return None
    event, notice_ms = table.needed("event"), table.duration_ms("notice")
    table.close()
    if "notice" not in table.raw:
        table.wrong(None, '`notice` is missing; say for how long, as in "2h"')
    return Postpone(event=event, notice_ms=notice_ms or 0)


def _fault(step: ScenarioTable) -> Action | None:
    table = step.inner("fault", ("kind", "instances", *_FAULT_KEYS))
    if table is None:
        return None
    kind, instances = table.choice("kind", FaultKind), table.names("instances")
    more = _unread(table, _FAULT_KEYS)
    table.close()
    return None if kind is None else SetFault(kind=kind, instances=instances, more=more)


def _clear_faults(step: ScenarioTable) -> Action:
    if not step.flag("clear-faults"):
        step.wrong("clear-faults", "`clear-faults` can only be true")
    return ClearFaults()


def _rollout(step: ScenarioTable) -> Action | None:
    table = step.inner("rollout", ("type", "of", *_ROLLOUT_KEYS))
    if table is None:
        return None
    type = table.choice("type", EventType, _ROLLOUT_TYPES)
    names, more = table.names("of", needed=True), _unread(table, _ROLLOUT_KEYS)
    table.close()
    return None if type is None else StartRollout(type=type, of=names, more=more)


def _expect(step: ScenarioTable) -> Action | None:
    table = step.inner("expect", _EXPECT_KEYS)
    if table is None:
        return None
    is_rollout = table.has("rollout")
    action = Expect(
        name=table.text("rollout") if is_rollout else table.needed("event"),
        is_rollout=is_rollout,
        phases=table.names("phase"),
        approved=None if is_rollout else _approved(table),
        within_ms=table.duration_ms("within") or 0,
    )
    table.close()
    known = _ROLLOUT_PHASES if is_rollout else _PHASES
    for each in action.phases:
        if each not in known:
            table.wrong("phase", f"`{each}` is no phase; it may be {_or(known)}")
    if table.raw.get("phase", []) == [] and "approved" not in table.raw:
        table.wrong(None, "say what to expect: `phase`, `approved` or both")
    return action


def _approved(table: ScenarioTable) -> bool | str | None:
    value = table.value("approved")
    if isinstance(value, bool | str | None):
        return value
    table.wrong("approved", "`approved` must be true, false or the name of an instance")
    return None


def _unread(table: ScenarioTable, keys: tuple[str, ...]) -> Json:
    """Return the values of these keys unchecked, because the server checks them."""
    return {key: table.value(key) for key in keys if table.has(key)}


def _or(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


ACTIONS: Mapping[str, ReadAction] = {
    "schedule": _schedule,
    **{str(kind): _operation(kind) for kind in OperationKind},
    "approve": lambda step: Approve(event=step.needed("approve")),
    "cancel": lambda step: Cancel(event=step.needed("cancel"), reason=step.text("reason")),
    "postpone": _postpone,
    "fault": _fault,
    "clear-faults": _clear_faults,
    "rollout": _rollout,
    "expect": _expect,
}


def schedule_body(action: Schedule) -> Json:
    spans = {"notice": action.notice_ms, "duration": action.duration_ms, "lasts": action.lasts_ms}
    body: Json = {"type": action.type, "targets": list(action.targets)}
    body |= {key: format_iso_duration(ms) for key, ms in spans.items() if ms is not None}
    if action.description is not None:
        body["description"] = action.description
    if action.already_happened:
        body["alreadyHappened"] = True
    return body


def fault_body(action: SetFault) -> Json:
    return {"kind": action.kind, "instances": list(action.instances), **action.more}


def rollout_body(action: StartRollout, scopes: list[str]) -> Json:
    return {"type": action.type, "scopes": scopes, **action.more}


def in_words(action: Action | None) -> str:
    """Return a short description of the action, such as `schedule Reboot web-0`."""
    match action:
        case Schedule():
            return f"schedule {action.type} {' '.join(action.targets)}"
        case Operate():
            return f"{action.kind} {action.instance}"
        case Approve():
            return f"approve {action.event}"
        case Cancel():
            return f"cancel {action.event}"
        case Postpone():
            return f"postpone {action.event}"
        case SetFault():
            return f"fault {action.kind} {' '.join(action.instances)}".rstrip()
        case ClearFaults():
            return "clear faults"
        case StartRollout():
            return f"rollout {action.type} of {' '.join(action.of)}"
        case Expect():
            return f"expect {expectation(action)}"
        case None:
            return ""


def expectation(action: Expect) -> str:
    """Return the expectation in words, such as `reboot to be started, approved by web-0`."""
    parts = [f"to be {' or '.join(action.phases)}"] if action.phases else []
    if isinstance(action.approved, str):
        parts.append(f"approved by {action.approved}")
    elif action.approved is not None:
        parts.append("approved" if action.approved else "approved by nobody")
    return f"{action.name} {', '.join(parts)}"
