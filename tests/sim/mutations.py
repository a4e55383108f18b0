"""One-line patches, each of which breaks a promise. The simulation must notice every one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutation:
    name: str
    file: str
    old: str
    new: str
    promise: str
    """How the report of the broken promise begins."""


MUTATIONS = [
    Mutation(
        "starts a millisecond early",
        "core/starting.py",
        "if now >= event.not_before_ms else None",
        "if now >= event.not_before_ms - 1 else None",
        "1 never early",
    ),
    Mutation(
        "approves for all down while one runs",
        "core/starting.py",
        "all(each.power is not Power.RUNNING",
        "any(each.power is not Power.RUNNING",
        "1 never early",
    ),
    Mutation(
        "lets a policy approve what is not its own",
        "core/approval.py",
        "if event.operation is OperationKind.RESTART and policy.approve_user_reboot:",
        "if policy.approve_user_reboot:",
        "1 never early",
    ),
    Mutation(
        "calls a scope idle after an hour",
        "core/deadlines.py",
        "timing.idle_ms + timing.idle_grace_ms",
        "timing.idle_ms // 24",
        "6 same number, same document",
    ),
    Mutation(
        "accepts any notice",
        "core/notice.py",
        "if chosen < now + floor_ms:",
        "if chosen < now:",
        "2 enough notice",
    ),
    Mutation(
        "rounds NotBefore down",
        "core/instants.py",
        "Instant(-(-instant // SECOND_MS) * SECOND_MS)",
        "Instant(instant // SECOND_MS * SECOND_MS)",
        "2 enough notice",
    ),
    Mutation(
        "gives a terminate the notice of the newest model",
        "core/notice.py",
        "instance.model.terminate_notice_ms or",
        "roster.model.terminate_notice_ms or",
        "2 enough notice",
    ),
    Mutation(
        "never announces a reimage",
        "core/announcing.py",
        "return instance.model.reimage_notice_ms is not None",
        "return False",
        "2 enough notice",
    ),
    Mutation(
        "runs user operations unseen",
        "core/announcing.py",
        "announced = scope.is_activated and _is_announced",
        "announced = not scope.is_activated and _is_announced",
        "2 enough notice",
    ),
    Mutation(
        "lets update domains overlap",
        "core/starting.py",
        "return both_platform and event.update_domain != started.update_domain",
        "return False",
        "3 one update domain",
    ),
    Mutation(
        "moves an instance under an event",
        "core/declaring.py",
        "if domain != event.update_domain:",
        "if domain < 0:",
        "3 one update domain",
    ),
    Mutation(
        "lets an event span update domains",
        "core/announcing.py",
        "if len(domains) > 1:",
        "if len(domains) > 99:",
        "3 one update domain",
    ),
    Mutation(
        "repeats an impact without asking",
        "engine/outbox.py",
        "if order.attempt == 1 or await driver.find(order) is not Found.DONE:",
        "if order:",
        "4 once",
    ),
    Mutation(
        "takes a new key for every attempt",
        "engine/outbox.py",
        "key=event.id,\n        attempt=attempt,",
        'key=type(event.id)(f"{event.id}-{attempt}"),\n        attempt=attempt,',
        "4 once",
    ),
    Mutation(
        "reports a failure as done",
        "engine/outbox.py",
        "return ReportFailure(event_id=order.key, attempt=order.attempt, reason=reason)",
        "return ReportDone(event_id=order.key)",
        "4 once",
    ),
    Mutation(
        "acknowledges without writing",
        "stores/memory.py",
        "if not change.transitions:",
        'if not change.transitions or by.kind == "operator":',
        "5 nothing acknowledged is lost",
    ),
    Mutation(
        "forgets to count a change",
        "core/decide.py",
        "if same_activation and visible_face(before) != visible_face(draft.scope):",
        "if not before.events:",
        "6 same number, same document",
    ),
    Mutation(
        "counts a change that nobody can see",
        "core/decide.py",
        "if same_activation and visible_face(before) != visible_face(draft.scope):",
        "if before.is_activated:",
        "6 same number, same document",
    ),
    Mutation(
        "takes the same approval twice",
        "core/approval.py",
        " and not any(each.by == by for each in event.approvals)",
        "",
        "7 approving is idempotent",
    ),
    Mutation(
        "refuses to approve what has started",
        "core/approval.py",
        "if event.is_finished:",
        "if event.phase is not Phase.SCHEDULED:",
        "7 approving is idempotent",
    ),
    Mutation(
        "wants as many approvals as an event has resources",
        "core/starting.py",
        "if event.is_approved:",
        "if len(event.approvals) >= len(event.resources):",
        "7 approving is idempotent",
    ),
    Mutation(
        "has no terminate barrier",
        "core/starting.py",
        "return min(event.not_before_ms, max(unapproved)) if unapproved else None",
        "return None",
        "8 terminate barrier",
    ),
    Mutation(
        "has a barrier for simultaneous deletes only",
        "core/starting.py",
        "and other.announced and not other.is_approved",
        "and other.announced and not other.is_approved and other.created_ms == event.created_ms",
        "8 terminate barrier",
    ),
    Mutation(
        "holds an approved delete beyond its own NotBefore",
        "core/starting.py",
        "return min(event.not_before_ms, max(unapproved)) if unapproved else None",
        "return max(unapproved) if unapproved else None",
        "8 terminate barrier",
    ),
    Mutation(
        "never takes work back from a dead node",
        "core/work.py",
        "if work is None or work.lease_until_ms is None or work.lease_until_ms > now:",
        "if work:",
        "9 every event ends",
    ),
    Mutation(
        "tries for ever",
        "core/work.py",
        "if failures >= timing.attempts_max:",
        "if failures > 10_000:",
        "9 every event ends",
    ),
    Mutation(
        "removes an instance under an event",
        "core/declaring.py",
        "if was and not stays:",
        "if stays and not stays:",
        "9 every event ends",
    ),
    Mutation(
        "keeps events of deleted instances",
        "core/ending.py",
        "for event in draft.scope.in_phase(Phase.SCHEDULED):",
        "for event in ():",
        "9 every event ends",
    ),
    Mutation(
        "leaves a stopped instance running",
        "core/ending.py",
        "if is_evicted else _POWER_AFTER.get(event.operation)",
        "if is_evicted else None",
        "9 every event ends",
    ),
    Mutation(
        "reimages to the old model",
        "core/ending.py",
        "is_reimaged = event.operation is OperationKind.REIMAGE",
        "is_reimaged = False",
        "9 every event ends",
    ),
    Mutation(
        "sleeps past a deadline",
        "core/deadlines.py",
        "yield barrier_falls_ms(scope, event) or event.not_before_ms",
        "yield later(event.not_before_ms, 10**15)",
        "9 every event ends",
    ),
    Mutation(
        "lets a newcomer inherit an event",
        "core/declaring.py",
        "if stays and not was:",
        "if stays and not stays:",
        "10 isolation",
    ),
    Mutation(
        "lets strangers approve",
        "core/approval.py",
        'if by.kind == "instance":',
        'if by.kind == "nobody":',
        "10 isolation",
    ),
    Mutation(
        "allows one operation too many",
        "core/operations.py",
        "if pending + added > pending_max:",
        "if pending + added > pending_max + 1:",
        "limit on operations",
    ),
    Mutation(
        "counts an operation on several instances as one",
        "core/operations.py",
        "if pending + added > pending_max:",
        "if pending >= pending_max:",
        "limit on operations",
    ),
    Mutation(
        "operates on the first of several",
        "core/decide.py",
        "for event_id, name in targets:",
        "for event_id, name in targets[:1]:",
        "all or none",
    ),
]
