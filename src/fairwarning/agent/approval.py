"""Whether and when an event may be approved. Pure.

An approval says yes for every VM of the event, and there is no way back. So it needs that this
VM is ready, or was told not to mind; that an event of several VMs is not approved for the
others by chance; that the lead time has come; and that nothing holds it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from fairwarning.agent.model import Approve as Policy
from fairwarning.agent.model import OnFailure, Phase, Shared, When
from fairwarning.agent.records import Approval, Mark, Record
from fairwarning.agent.steps import Approve, AskPeers, CheckHold, Report, Step, Wait

PEERS_EVERY = timedelta(seconds=2)
AGAIN_S_MAX = 30.0
"""The longest pause after a failure to report or approve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """An answer that was got, and when. One of the future is worth nothing: the service's clock
    was set back since."""

    at: datetime
    waiting: tuple[str, ...] = ()
    """Peers that are not ready, or why the answer is not known; empty: all are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is true for the moment only, and is asked again after a restart."""

    me: str = ""
    peers: Mapping[str, Heard] = field(default_factory=dict)
    """By event."""
    holds: Mapping[str, Heard] = field(default_factory=dict)
    """The same of the hold command; what is waited for is its own words."""
    not_again_before: Mapping[str, datetime] = field(default_factory=dict)
    """After a failure to report or approve."""


def is_ready(record: Record) -> bool:
    """Whether this VM is out of the event's way, as far as its policy cares."""
    if record.rule is None:
        return False
    if record.rule.approve.when is When.ALWAYS:
        return True
    for place, action in record.actions(Phase.SCHEDULED):
        deed = record.deed(place)
        if deed is None:
            return False
        if deed.mark is not Mark.DONE and action.on_failure is OnFailure.STOP:
            return False
    return True


def next_to_approval(record: Record, facts: Facts, at: datetime) -> Step | None:
    """For an event that has not started and whose actions have ended; None: nothing to do."""
    if record.rule is None or not record.is_mine or record.approval is Approval.DONE:
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
    """A yes is good for as long as the command would not be asked again anyway."""
    if policy.hold is None:
        return None
    heard = facts.holds.get(id)
    again_at = None if heard is None else heard.at + timedelta(seconds=policy.hold.every_s)
    if heard is None or again_at is None or not heard.at <= at < again_at:
        return CheckHold(event_id=id, hold=policy.hold)
    if not heard.waiting:
        return None
    return Wait(event_id=id, until=again_at, why=f"held: {heard.waiting[0]}")
