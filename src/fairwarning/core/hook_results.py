"""This module decides what follows from the results of hooks, and when an impact is over.

Theory of operation. The work of an event counts the hooks whose results are stored. A node calls
the driver only when all hooks before the impact are counted, so a hook that is not counted can fail
the event without an impact. When the impact is over, `ImpactEnded` stores how it went, and the
event stays started until the hooks after it are counted. So the node that takes over after a crash
knows which hooks are left, and never calls the driver again only because of them.
"""

from fairwarning.core import transitions
from fairwarning.core.commands import ReportHook
from fairwarning.core.completion import complete
from fairwarning.core.hooks import HOOK_OUTPUT_CHARS_MAX, HookStage, OnFailure
from fairwarning.core.instants import Instant
from fairwarning.core.lifecycle import Draft
from fairwarning.core.model import Event, Phase


def end_impact(draft: Draft, event: Event, outcome: Phase, reason: str, now: Instant) -> None:
    """End the event with this outcome, or first have the hooks after the impact run."""
    assert event.work is not None
    if event.work.hooks.outcome is not None:
        return  # The first report counts, as it would without hooks.
    if draft.scope.roster.hooks.after:
        draft.add(
            transitions.ImpactEnded(event_id=event.id, outcome=outcome, reason=reason, at_ms=now)
        )
    else:
        _conclude(draft, event, outcome, reason, now)


def note_hook(draft: Draft, event: Event, report: ReportHook, now: Instant) -> None:
    """Count the hook if the node has the work and this is the next hook. Else nothing changes."""
    work = event.work
    if work is None or (work.node, work.attempt) != (report.node, report.attempt):
        return
    is_after = report.stage is HookStage.AFTER
    hooks = draft.scope.roster.hooks.of(report.stage)
    is_next = report.number == work.hooks.counted(report.stage) + 1 <= len(hooks)
    if not is_next or is_after != (work.hooks.outcome is not None):
        return
    hook = hooks[report.number - 1]
    draft.add(
        transitions.HookFinished(
            event_id=event.id,
            attempt=report.attempt,
            stage=report.stage,
            number=report.number,
            name=hook.label,
            is_done=report.is_done,
            tries=report.tries,
            took_ms=report.took_ms,
            result=report.result,
            output=report.output[-HOOK_OUTPUT_CHARS_MAX:],
            at_ms=now,
        )
    )
    if not is_after and not report.is_done and hook.on_failure is OnFailure.FAIL:
        reason = f"hook before {report.number} ({hook.label}) failed: {report.result}"
        end_impact(draft, draft.scope.events[event.id], Phase.FAILED, reason, now)


def conclude(draft: Draft, now: Instant) -> None:
    """End the events whose impact is over and that have no hook left."""
    after = draft.scope.roster.hooks.after
    for event in draft.scope.unfinished:
        hooks = None if event.work is None else event.work.hooks
        if hooks and hooks.outcome is not None and hooks.after >= len(after):
            _conclude(draft, event, hooks.outcome, hooks.reason, now)


def give_up_hooks(draft: Draft, event: Event, now: Instant) -> None:
    """End an event whose impact is over, although hooks are left. Its outcome stays."""
    assert event.work is not None
    assert event.work.hooks.outcome is not None
    _conclude(draft, event, event.work.hooks.outcome, event.work.hooks.reason, now)


def _conclude(draft: Draft, event: Event, outcome: Phase, reason: str, now: Instant) -> None:
    if outcome is Phase.COMPLETED:
        complete(draft, event, now)
    else:
        draft.add(transitions.Failed(event_id=event.id, reason=reason, at_ms=now))
