"""Compares the driver's log with the history: each impact happens once (promise 4)."""

from collections.abc import Iterator

from fairwarning.live_check.checks.evidence import EventHistory, Evidence, Finding
from fairwarning.live_check.records import DriverCall, Entry

ONCE = "4 once"
COVERS_ALL = "7 approving is idempotent and covers all resources"


def check_once(evidence: Evidence) -> Iterator[Finding]:
    for key, calls in evidence.calls.items():
        event = evidence.events.get(key)
        if event is None:
            yield Finding(ONCE, key, "the driver was called, and the history has no such event")
            continue
        yield from _orders(evidence, event, calls)
        yield from _repeats(event, calls)
    for event in evidence.events.values():
        yield from _outcome(evidence, event, evidence.calls.get(event.id, []))


def _orders(evidence: Evidence, event: EventHistory, calls: list[DriverCall]) -> Iterator[Finding]:
    """Checks that each `do` call was allowed, whether or not the driver carried it out."""
    orders: dict[int, DriverCall] = {}
    for place, call in enumerate(calls):
        if call.what != "do":
            continue
        before = orders.setdefault(call.attempt, call)
        if before is not call:
            apart_s = call.at.mono_s - before.at.mono_s
            text = f"attempt {call.attempt} was ordered again, {apart_s:.3f} s after the first time"
            yield Finding(ONCE, event.id, text)
            continue
        trouble = _late(evidence, event, call, calls[:place]) or _without_find(call, calls[:place])
        if trouble:
            yield Finding(ONCE, event.id, f"attempt {call.attempt} was ordered {trouble}")
        missing = set(event.resources) - {each.name for each in call.instances}
        if missing - evidence.deleted:
            text = f"the order leaves out {', '.join(sorted(missing - evidence.deleted))}"
            yield Finding(COVERS_ALL, event.id, text)


def _late(
    evidence: Evidence, event: EventHistory, call: DriverCall, before: list[DriverCall]
) -> str:
    """Returns why the node must not give this order, or an empty text if it may."""
    handed = [
        line
        for line in event.all("HandedOver")
        if line.entry.data["attempt"] == call.attempt
        and line.entry.at_ms <= call.at.wall_ms + evidence.slack_ms
    ]
    if not handed:
        return "and the history had handed it to nobody"
    if evidence.was_stalled(handed[0].entry.at_ms, call.at.wall_ms):
        return ""
    higher = [each.attempt for each in before if each.attempt > call.attempt]
    if higher:
        return f"after attempt {max(higher)}"
    lost = _taken_away(event, call, handed[0].place)
    if lost is not None and (late_ms := call.at.wall_ms - lost.at_ms) > evidence.slack_ms:
        return f"{late_ms:.0f} ms after the history says {lost.kind}"
    return ""


def _taken_away(event: EventHistory, call: DriverCall, place: int) -> Entry | None:
    """Returns the entry by which the node lost the work that it got at `place`, or None."""
    later = [line.entry for line in event.lines if line.place > place]
    for number, entry in enumerate(later):
        if entry.kind in ("AttemptFailed", "Completed", "Failed"):
            return entry
        if entry.kind == "AttemptLost":
            # If the same node gets the next attempt, it has lost nothing.
            following = (each for each in later[number:] if each.kind == "HandedOver")
            taker = next(following, None)
            if not call.node or taker is None or taker.data["node"] != call.node:
                return entry
    return None


def _without_find(call: DriverCall, before: list[DriverCall]) -> str:
    """Returns what is wrong with a second attempt, which must follow a `find`. Empty if nothing."""
    if call.attempt == 1:
        return ""
    found = [
        each.outcome for each in before if each.what == "find" and each.attempt == call.attempt
    ]
    if not found:
        return "blindly: the driver was not asked what became of the one before"
    return f"though find had answered {found[-1]}" if found[-1] in ("running", "done") else ""


def _repeats(event: EventHistory, calls: list[DriverCall]) -> Iterator[Finding]:
    """Checks that an impact began again only after it had failed or its program was killed."""
    ends = {call.pid: call for call in calls if call.what == "end"}
    begins = [call for call in calls if call.what == "begin"]
    for number, call in enumerate(begins):
        for before in begins[:number]:
            end = ends.get(before.pid)
            is_over = end is None or end.at.mono_s <= call.at.mono_s
            if not is_over or (end is not None and end.outcome == "done"):
                yield Finding(ONCE, event.id, f"attempt {call.attempt} was carried out again")


def _outcome(evidence: Evidence, event: EventHistory, calls: list[DriverCall]) -> Iterator[Finding]:
    done = [call for call in calls if call.what == "end" and call.outcome == "done"]
    if completed := event.first("Completed"):
        if not done:
            yield Finding(ONCE, event.id, "the history says Completed, and the driver never did it")
        elif done[0].at.wall_ms > completed.entry.at_ms + evidence.slack_ms:
            yield Finding(ONCE, event.id, "the history said Completed before the driver was done")
    failed = event.first("Failed")
    if failed is not None and done and done[0].at.wall_ms < failed.entry.at_ms:
        yield Finding(ONCE, event.id, "the history says Failed, and the driver had done it")
    if event.first("Cancelled") and any(call.what == "do" for call in calls):
        yield Finding(ONCE, event.id, "it was cancelled, and the driver was called")
    if (started := event.first("Started")) is None:
        return
    cancelled = event.first("Cancelled")
    if cancelled is not None and cancelled.place > started.place:
        yield Finding(ONCE, event.id, "it was cancelled after it had started")
