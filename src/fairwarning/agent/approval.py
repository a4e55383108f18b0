"""Decides whether and when an event may be approved, and says why not. This module is pure.

An approval counts for every VM of the event and cannot be taken back. So these conditions must be
met: this VM is ready, or its policy is ALWAYS; the other VMs of the event are ready, if the policy
demands it; the lead time has begun; and the hold command allows it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from fairwarning.agent.config.model import Approve as Policy
from fairwarning.agent.config.model import OnFailure, Phase, Shared, When
from fairwarning.agent.records import Approval, Progress, Record
from fairwarning.agent.steps import Approve, AskPeers, CheckHold, Report, Step, Wait

PEERS_EVERY = timedelta(seconds=2)
AGAIN_S_MAX = 30.0
"""The longest pause in seconds before a failed report or approval is sent again. Later could be too
late for the notice of an event.
"""


_ENDED_BADLY = (Progress.FAILED, Progress.SKIPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the other VMs or the hold command last answered, and when.

    An answer whose time is in the future is not used: the service's clock was then set back.
    """

    at: datetime
    waiting: tuple[str, ...] = ()
    """The peers that are not ready, or the output of the hold command that forbids the approval.
    If it is empty, nothing forbids the approval.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The answers and pauses that an approval depends on. They are not stored, so a restarted agent
    asks again.
    """

    me: str = ""
    peers: Mapping[str, Answer] = field(default_factory=dict)
    """The last answer about the peers, by event id."""
    holds: Mapping[str, Answer] = field(default_factory=dict)
    """The last answer of the hold command, by event id. Its output is in `waiting`."""
    not_again_before: Mapping[str, datetime] = field(default_factory=dict)
    """The earliest time of the next try after a failed report or approval, by event id."""


def is_ready(record: Record) -> bool:
    """Return whether this VM is ready for the event by the policy of its rule.

    With ALWAYS, it is ready at once. Otherwise, all actions of the phase SCHEDULED must have ended,
    and those with `on_failure = "stop"` must have succeeded.
    """
    if record.rule is None:
        return False
    if record.rule.approve.when is When.ALWAYS:
        return True
    for place, action in record.actions(Phase.SCHEDULED):
        state = record.action_state(place)
        if state is None:
            return False
        if state.progress is not Progress.DONE and action.on_failure is OnFailure.STOP:
            return False
    return True


def next_to_approval(record: Record, facts: Facts, at: datetime) -> Step | None:
    """Return the next step towards the approval, or None if the event is not to be approved.

    Call this for an event that has not started and whose SCHEDULED actions have ended.
    """
    if record.is_local or record.rule is None or not record.is_mine:
        return None
    if record.approval is Approval.DONE:
        return None
    policy = record.rule.approve
    if policy.when is When.NEVER or not is_ready(record):
        return None
    id = record.event.id
    is_shared = len(record.event.resources) > 1
    if is_shared and policy.shared is Shared.LEADER and record.event.resources[0] != facts.me:
        return None
    put_off = facts.not_again_before.get(id)
    if put_off is not None and at < put_off <= at + timedelta(seconds=AGAIN_S_MAX):
        return Wait(event_id=id, until=put_off, why="the service could not be told; again then")
    if is_shared and policy.shared is Shared.ALL:
        if not record.is_reported:
            return Report(event_id=id)
        if step := _peers_first(id, facts, at):
            return step
    if step := _in_time(record, policy, at):
        return step
    if step := _unless_held(id, policy, facts, at):
        return step
    return Approve(event_id=id)


def _peers_first(id: str, facts: Facts, at: datetime) -> Step | None:
    heard = facts.peers.get(id)
    if heard is None:
        return AskPeers(event_id=id)
    if not heard.waiting:
        return None
    again_at = heard.at + PEERS_EVERY
    if not heard.at <= at < again_at:
        return AskPeers(event_id=id)
    return Wait(event_id=id, until=again_at, why=f"{', '.join(heard.waiting)} not ready")


def _in_time(record: Record, policy: Policy, at: datetime) -> Step | None:
    if policy.lead_s is None or record.not_before is None:
        return None
    opens_at = record.not_before - timedelta(seconds=policy.lead_s)
    if at >= opens_at:
        return None
    return Wait(event_id=record.event.id, until=opens_at, why="approval waits for its lead time")


def _unless_held(id: str, policy: Policy, facts: Facts, at: datetime) -> Step | None:
    """Return the step that must come before the approval: to run the hold command, or to wait
    because its last answer forbids the approval. Return None if the approval is allowed.

    Each answer of the hold command is used for `every_s` seconds.
    """
    if policy.hold is None:
        return None
    heard = facts.holds.get(id)
    again_at = None if heard is None else heard.at + timedelta(seconds=policy.hold.every_s)
    if heard is None or again_at is None or not heard.at <= at < again_at:
        return CheckHold(event_id=id, hold=policy.hold)
    if not heard.waiting:
        return None
    return Wait(event_id=id, until=again_at, why=f"held: {heard.waiting[0]}")


def why_not_approved(record: Record, me: str, step: Step | None) -> str | None:
    """Return why the event is not approved now. It is None if it is approved, has started, or the
    drain still goes on. `step` is what the plan decided for the event.
    """
    if record.is_local or record.phase is not Phase.SCHEDULED:
        return None
    if record.approval is not Approval.NONE:
        return None
    if record.rule is None:
        return "no rule fits it"
    if not record.is_mine:
        return f"it does not concern {me}"
    policy = record.rule.approve
    if policy.when is When.NEVER:
        return f"rule {record.rule.name!r} never approves"
    if failed := _failed(record):
        return failed
    if isinstance(step, Wait) and not record.action_states and not is_ready(record):
        return step.why  # The event is far away, so the drain has not begun.
    if not is_ready(record):
        return None
    resources = record.event.resources
    if len(resources) > 1 and policy.shared is Shared.LEADER and resources[0] != me:
        return f"{resources[0]}, the first VM of the event, approves it"
    return step.why if isinstance(step, Wait) else None


def _failed(record: Record) -> str | None:
    """Return the first action whose failure forbids the approval, in words."""
    if is_ready(record):
        return None
    for place, action in record.actions(Phase.SCHEDULED):
        state = record.action_state(place)
        is_bad = state is not None and state.progress in _ENDED_BADLY
        if state is not None and is_bad and action.on_failure is OnFailure.STOP:
            return f"{action.title} did not work" + (f": {state.why}" if state.why else "")
    return None
