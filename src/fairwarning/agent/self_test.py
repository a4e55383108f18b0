"""Runs the real actions for a made-up event, without a service. `agent test` uses this."""

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from fairwarning.agent import logs
from fairwarning.agent.actions.base import ActionHandler
from fairwarning.agent.clock import Clock
from fairwarning.agent.config.model import Config, Phase, Settings, When
from fairwarning.agent.metrics import Metrics
from fairwarning.agent.records import Memory, Record
from fairwarning.agent.runner import Runner
from fairwarning.agent.steps import Approve
from fairwarning.client.changes import Seen
from fairwarning.client.model import Event, Instance, Status

NOTICE_S = {"Freeze": 900, "Reboot": 900, "Redeploy": 600, "Preempt": 30, "Terminate": 300}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    record: Record
    """The record just before the agent forgot it."""
    problems: tuple[str, ...]
    """The actions that failed, were skipped, or could not be undone, each with the reason."""


class _FakeService:
    """A service that shows the made-up event and accepts everything."""

    has_answered = True

    def __init__(self) -> None:
        self.seen = Seen()

    async def follow(self) -> None:
        await asyncio.Event().wait()

    async def approve(self, *event_ids: str) -> None:
        for id in event_ids:
            logs.say("here the agent would approve", event=id)

    async def report(self, event_id: str) -> tuple[str, ...]:
        return await self.waiting(event_id)

    async def waiting(self, event_id: str) -> tuple[str, ...]:
        return ()


class _LastRecord:
    """Keeps the last record of the event, instead of a state file."""

    def __init__(self) -> None:
        self.record: Record | None = None
        self.problems: dict[str, None] = {}
        """The problems as keys, so that each comes once and in order."""

    def save(self, memory: Memory) -> None:
        for record in memory.records.values():
            self.record = record
            for slot, state in record.action_states.items():
                if state.why:
                    phase, _, number = slot.partition("/")
                    assert record.rule is not None
                    action = record.rule.actions(Phase(phase))[int(number)]
                    self.problems[f"{phase}: {action.title}: {state.why}"] = None


def made_up(type: str, name: str, now: datetime | None = None) -> Event:
    now = datetime.now(UTC) if now is None else now
    return Event(
        id=str(uuid.uuid4()).upper(),
        type=type,
        status=Status.SCHEDULED,
        resources=(name,),
        not_before=now + timedelta(seconds=NOTICE_S.get(type, 900)),
        description="A test of the agent; nothing will happen to this VM.",
        source="User",
        duration_s=None,
    )


async def play(
    config: Config,
    me: Instance,
    event: Event,
    handler_of: Callable[[Settings], ActionHandler],
    *,
    is_cancelled: bool = False,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Report:
    """Run the actions for an event that is scheduled, started and finished, and report problems.

    With `is_cancelled`, the event is scheduled and then cancelled.
    """
    service, last, clock = _FakeService(), _LastRecord(), Clock(now)
    runner = Runner(
        config=_never(config) if is_cancelled else config,
        me=me,
        service=service,
        clock=clock,
        state=last,
        memory=Memory(),
        handler_of=handler_of,
        metrics=Metrics(),
        simulated_steps=(Approve,),
    )
    started = replace(event, status=Status.STARTED, not_before=None)
    shown: list[list[Event]] = [[event], []] if is_cancelled else [[event], [started], []]
    for events in shown:
        service.seen = Seen(events={each.id: each for each in events})
        await runner.run(lambda: runner.is_idle)
    assert last.record is not None, "the runner has seen the event"
    return Report(record=last.record, problems=tuple(last.problems))


def _never(config: Config) -> Config:
    """Return the config with the approval policy NEVER, because an approved event cannot be
    cancelled.
    """
    rules = (replace(rule, approve=replace(rule.approve, when=When.NEVER)) for rule in config.rules)
    return replace(config, rules=tuple(rules))
