"""This module writes each line of the journal as an English sentence, for history, logs and
notifications.

A sentence has no full stop. It does not say when or by whom the line was written, because the line
shows that beside it.
"""

from collections.abc import Sequence
from typing import assert_never

from msgspec.structs import replace

from fairwarning.common.durations import human_ms
from fairwarning.common.escape import counted, one_line, several
from fairwarning.core import transitions
from fairwarning.core.instants import SECOND_MS, Instant, to_datetime
from fairwarning.core.model import Actor, Event, EventType, OperationKind, Phase, StartCause
from fairwarning.core.transitions import EventTransition, RosterTransition, Transition

HIDDEN = "…"
NAMES_SAID_MAX = 5  # A line of the history must stay readable.
OUTPUT_SAID_CHARS_MAX = 200  # As above. The whole output is in the data of the line.
_CAUSES = {
    StartCause.APPROVED: "approved",
    StartCause.DUE: "its time had come",
    StartCause.AUTOMATIC: "nobody had to be asked",
    StartCause.ALREADY_HAPPENED: "it had already happened",
}
_FIRST_ASKED = "activated: an instance asked for the document"


def sentence(transition: Transition) -> str:
    if isinstance(transition, RosterTransition):
        return _of_roster(transition)
    match transition:
        case transitions.Noted():
            # `token:ci` and `created` give `token ci created`.
            subject = transition.subject.replace(":", " ", 1)
            return _because(f"{subject} {transition.action}", transition.detail)
        case transitions.Unknown(kind=kind):
            return f"{kind} (this version cannot read such a line)"
        case transitions.Activated(reason=reason):
            return f"activated anew: {reason}" if reason else _FIRST_ASKED
        case transitions.Deactivated():
            return "deactivated: no instance had asked for the document for a long time"
        case transitions.DocumentChanged(incarnation=incarnation):
            return f"the document changed to incarnation {incarnation}"
        case transitions.Forgotten(event_ids=ids, names=names):
            return f"{counted(len(ids), 'event')} and {counted(len(names), 'instance')} forgotten"
        case _:
            return _of_event(transition)


def in_words(instant: Instant) -> str:
    """Return the instant like `2026-11-16 09:30:00 UTC`."""
    return f"{to_datetime(instant):%Y-%m-%d %H:%M:%S} UTC"


def listed(names: Sequence[str]) -> str:
    """Return all names, or the first few names and the number of the others."""
    return several(names, NAMES_SAID_MAX)


def _of_event(transition: EventTransition) -> str:
    match transition:
        case transitions.Scheduled(event=event):
            return _announced(event)
        case transitions.Approved(by=by):
            return f"approved by {_who(by)}"
        case transitions.Seen(name=name):
            return f"seen for the first time, by {name}"
        case transitions.Drained(name=name):
            return f"{name} is drained"
        case transitions.Started(cause=cause, late_ms=late):
            said = f"started {late // SECOND_MS} s late" if late else "started"
            return f"{said} ({_CAUSES[cause]})"
        case transitions.Cancelled(reason=reason, replaced_by=replacement):
            place = "" if replacement is None else f"; {replacement} takes its place"
            return f"{_because('cancelled', reason)}{place}"
        case transitions.HandedOver(attempt=attempt, node=node):
            return f"handed to the driver by {node}, attempt {attempt}"
        case transitions.LeaseRenewed(lease_until_ms=until):
            return f"still under way, the driver's lease runs until {in_words(until)}"
        case transitions.AttemptLost(attempt=attempt):
            return f"attempt {attempt} was lost; the driver will be asked what became of it"
        case transitions.AttemptFailed(attempt=attempt, reason=reason, retry_ms=retry):
            again = f"to be tried again at {in_words(retry)}"
            return f"{_because(f'attempt {attempt} failed', reason)}; {again}"
        case transitions.HookFinished():
            return _hook(transition)
        case transitions.ImpactEnded(outcome=Phase.COMPLETED):
            return "the driver has completed the impact; the hooks after it follow"
        case transitions.ImpactEnded(reason=reason):
            return f"{_because('the impact has failed', reason)}; the hooks after it follow"
        case transitions.Completed():
            return "completed"
        case transitions.Failed(reason=reason):
            return _because("failed", reason)
        case _:
            assert_never(transition)


def _hook(transition: transitions.HookFinished) -> str:
    what = f"hook {transition.stage} {transition.number} ({transition.name})"
    how = "done" if transition.is_done else "failed"
    tries = f" on try {transition.tries}" if transition.tries > 1 else ""
    said = one_line(transition.output)
    if len(said) > OUTPUT_SAID_CHARS_MAX:
        said = f"{HIDDEN}{said[-OUTPUT_SAID_CHARS_MAX:]}"
    output = f"; output: {said}" if said else ""
    return f"{what} {how}{tries}: {transition.result}, after {human_ms(transition.took_ms)}{output}"


def _of_roster(transition: RosterTransition) -> str:
    match transition:
        case transitions.InstancesAdded(instances=instances):
            return f"{_instances([each.name for each in instances])} added"
        case transitions.InstanceDeleted(name=name, without_notice=True):
            return f"instance {name} removed without its terminate notice"
        case transitions.InstanceDeleted(name=name):
            return f"instance {name} deleted"
        case transitions.PowerChanged(name=name, power=power):
            return f"instance {name} is now {power}"
        case transitions.ModelChanged(model=model):
            return f"the model changed to generation {model.generation}"
        case transitions.InstancesUpgraded(names=names, lose_notice=losers):
            losing = f"; no terminate notice from now on: {listed(losers)}" if losers else ""
            return f"{_instances(names)} upgraded to the latest model{losing}"
        case transitions.PolicyChanged():
            return "the policy changed"
        case transitions.RosterDeclared(roster=roster):
            return f"declared with {counted(len(roster.live), 'instance')}"
        case _:
            assert_never(transition)


def _announced(event: Event) -> str:
    what = f"{_what(event)} of {listed(event.resources)}"
    if not event.announced:
        return f"{what} asked for, to run at once"
    return f"{what} announced for {in_words(event.not_before_ms)}"


def _what(event: Event) -> str:
    """Return the type of the event, or its operation where that is more precise."""
    if event.operation is None:
        return event.type
    says_more = event.type is EventType.POWER or event.operation is OperationKind.REIMAGE
    return event.operation.capitalize() if says_more else event.type


def _because(what: str, reason: str) -> str:
    return f"{what}: {reason}" if reason else what


def _who(actor: Actor) -> str:
    return actor.name if actor.kind == actor.name else f"{actor.kind} {actor.name}"


def _instances(names: Sequence[str]) -> str:
    return f"instance{'' if len(names) == 1 else 's'} {listed(names)}"


def without_secrets(transition: Transition) -> Transition:
    """Return the transition without settings of drivers, arguments and addresses of hooks, and
    unknown bodies, because these may contain secrets.
    """
    if isinstance(transition, transitions.Unknown):
        return replace(transition, body=HIDDEN)
    if not isinstance(transition, transitions.RosterDeclared):
        return transition
    roster = transition.roster
    hidden = dict.fromkeys(roster.driver_settings, HIDDEN)
    hooks = roster.hooks.without_secrets
    return transitions.RosterDeclared(roster=replace(roster, driver_settings=hidden, hooks=hooks))
