"""Deeds as requests of the operator API, and in words. Pure."""

from fairwarning.core.instants import format_iso_duration
from fairwarning.rehearsal.model import (
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
