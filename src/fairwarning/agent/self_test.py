"""`agent test`: a made-up event goes through the real actions, with nothing else behind it."""

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from fairwarning.agent import logs
from fairwarning.agent.actions.base import Doer
from fairwarning.agent.clock import Clock
from fairwarning.agent.metrics import Figures
from fairwarning.agent.model import Config, Phase, Settings, When
from fairwarning.agent.records import Memory, Record
from fairwarning.agent.runner import Runner
from fairwarning.agent.steps import Approve
from fairwarning.client.changes import Seen
from fairwarning.client.model import Event, Instance, Status

NOTICE_S = {"Freeze": 900, "Reboot": 900, "Redeploy": 600, "Preempt": 30, "Terminate": 300}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    record: Record
    """Just before it was forgotten."""
    problems: tuple[str, ...]
    """What failed, was left out, or could not be undone."""


class _Stage:
    """In the service's place: shows what it is told to, and agrees to everything."""

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


class _Witness:
    """Keeps the last that was known of the event, and nothing on disk."""

    def __init__(self) -> None:
        self.last: Record | None = None
        self.problems: dict[str, None] = {}
        """In their order."""

    def save(self, memory: Memory) -> None:
        for record in memory.records.values():
            self.last = record
            for slot, deed in record.deeds.items():
                if deed.why:
                    phase, _, number = slot.partition("/")
                    assert record.rule is not None
                    action = record.rule.actions(Phase(phase))[int(number)]
                    self.problems[f"{phase}: {action.title}: {deed.why}"] = None


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
    doer_of: Callable[[Settings], Doer],
    *,
    is_cancelled: bool = False,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Report:
    """Scheduled, started and finished; or scheduled and cancelled."""
    stage, witness, clock = _Stage(), _Witness(), Clock(now)
    runner = Runner(
        config=_never(config) if is_cancelled else config,
        me=me,
        service=stage,
        clock=clock,
        state=witness,
        memory=Memory(),
        doer_of=doer_of,
        figures=Figures(),
        pretended=(Approve,),
    )
    started = replace(event, status=Status.STARTED, not_before=None)
    shown: list[list[Event]] = [[event], []] if is_cancelled else [[event], [started], []]
    for events in shown:
        stage.seen = Seen(events={each.id: each for each in events})
        await runner.run(lambda: runner.is_idle)
    assert witness.last is not None, "the runner has seen the event"
    return Report(record=witness.last, problems=tuple(witness.problems))


def _never(config: Config) -> Config:
    """An event that was approved is not cancelled any more."""
    rules = (replace(rule, approve=replace(rule.approve, when=When.NEVER)) for rule in config.rules)
    return replace(config, rules=tuple(rules))
