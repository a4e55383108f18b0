"""Executes one step: runs an action with retries, asks peers, checks a hold, or approves."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Protocol

from fairwarning.agent import logs, peers
from fairwarning.agent.actions import processes
from fairwarning.agent.actions.base import ActionFailed, ActionHandler, Context
from fairwarning.agent.approval import AGAIN_S_MAX, Answer
from fairwarning.agent.clock import Clock, TimeIsUp
from fairwarning.agent.config.model import Action, Settings
from fairwarning.agent.metrics import Metrics
from fairwarning.agent.records import Memory, Record
from fairwarning.agent.steps import Approve, AskPeers, CheckHold, Do, Report, Undo, Work
from fairwarning.agent.templates import make_context
from fairwarning.client.model import EventsUnavailable, Instance, NotApproved

HOLD_S_MAX = 60.0
"""How many seconds a hold command may take. It is asked again and again, so it should be quick."""
RETRY_S_MAX = 30.0
"""The longest pause in seconds before an action is tried again. It is much less than a usual
notice.
"""
AGAIN_S = 2.0
"""The first pause after a report or an approval failed. It doubles with each failure."""


class Approver(peers.PeerService, Protocol):
    async def approve(self, *event_ids: str) -> None: ...


class Failed(Exception):
    """The step failed. The message says why and is stored in the state."""


class StepExecutor:
    """Executes steps, and keeps the answers and pauses that only this process knows."""

    def __init__(
        self,
        *,
        me: Instance,
        service: Approver,
        clock: Clock,
        handler_of: Callable[[Settings], ActionHandler],
        metrics: Metrics,
    ) -> None:
        self.me = me
        """This VM. The runner replaces it when a reload learns more about the VM."""
        self._service = service
        self._clock = clock
        self._handler_of = handler_of
        self._metrics = metrics
        self.peer_answers: dict[str, Answer] = {}
        self.holds: dict[str, Answer] = {}
        self.not_again_before: dict[str, Answer] = {}
        self._failures: dict[str, int] = {}

    async def execute(self, step: Work, memory: Memory, keep: Callable[[str, str], None]) -> None:
        """Execute one step. Raises Failed with the reason if it fails.

        `keep` stores a value by name for the undo of the action.
        """
        match step:
            case Do() | Undo():
                await self._act(step, memory, keep)
            case Report() | AskPeers():
                await self._ask_peers(step, memory.records[step.event_id])
            case CheckHold():
                await self._check_hold(step, memory.records[step.event_id])
            case Approve():
                await self._approve(memory.records[step.event_id])

    def forget(self, record: Record) -> None:
        id = record.event.id
        for each in (self.peer_answers, self.holds, self.not_again_before, self._failures):
            each.pop(id, None)
        if record.rule is not None and record.is_reported:
            peers.forget(record.rule.approve.peers, record.event, self.me.name)

    async def _act(self, step: Do | Undo, memory: Memory, keep: Callable[[str, str], None]) -> None:
        action = memory.action(step.place)
        kept = dict(memory.kept.get(memory.key(step.place), {}))

        def keep_too(name: str, value: str) -> None:
            # The next attempt must not mistake the result of this one for the original state.
            keep(name, value)
            kept[name] = value

        for attempt in range(action.retries + 1):
            context = self._context(step, memory, keep_too, kept)
            try:
                await self._attempt(step, action, context)
            except (ActionFailed, TimeIsUp) as problem:
                self._metrics.count("actions_total", purpose=_purpose(step), outcome="failed")
                if attempt == action.retries:
                    raise Failed(str(problem)) from None
                title = context.render(action.title)
                logs.warn(
                    f"{title} did not work ({problem}); trying again",
                    event=step.place.event_id,
                    action=title,
                )
                await self._clock.sleep(min(RETRY_S_MAX, 2.0**attempt))
            else:
                self._metrics.count("actions_total", purpose=_purpose(step), outcome="done")
                return

    async def _attempt(self, step: Do | Undo, action: Action, context: Context) -> None:
        handler = self._handler_of(action.settings)
        if isinstance(step, Do):
            await self._clock.within(action.timeout_s, handler.do(action, context))
        else:
            await self._clock.within(action.timeout_s, handler.undo(action, context))

    def _context(
        self,
        step: Do | Undo,
        memory: Memory,
        keep: Callable[[str, str], None],
        kept: Mapping[str, str],
    ) -> Context:
        left_s = memory.action(step.place).timeout_s
        if isinstance(step, Do) and step.ends_at is not None:
            left_s = min(left_s, (step.ends_at - self._clock.now()).total_seconds())
        return make_context(
            memory.records[step.place.event_id].event,
            self.me,
            step.place.phase,
            max(0.0, left_s),
            purpose=_purpose(step),
            keep=keep,
            kept=kept or None,
        )

    async def _ask_peers(self, step: Report | AskPeers, record: Record) -> None:
        assert record.rule is not None
        ask = peers.report if isinstance(step, Report) else peers.waiting
        known = record.rule.approve.peers
        try:
            waiting = await ask(self._service, known, record.event, self.me.name)
        except peers.PeersUnknown as problem:
            raise self._put_off(record, str(problem)) from None
        before = self.peer_answers.get(step.event_id)
        self.peer_answers[step.event_id] = Answer(at=self._clock.now(), waiting=waiting)
        if waiting and (before is None or before.waiting != waiting):
            logs.say(
                f"{', '.join(waiting)} not ready yet, so the event is not approved yet",
                event=step.event_id,
            )

    async def _check_hold(self, step: CheckHold, record: Record) -> None:
        left_s = record.event.time_left_s(self._clock.now())
        context = make_context(record.event, self.me, record.phase, left_s, purpose="hold")
        argv = step.hold.command
        if not step.hold.is_shell:
            argv = tuple(context.render(word) for word in argv)
        asking = processes.run(
            argv, environment=context.environment, stdin=context.payload.encode()
        )
        try:
            finished = await self._clock.within(HOLD_S_MAX, asking)
            held = "" if finished.code == 0 else processes.complaint(argv[0], finished)
        except (ActionFailed, TimeIsUp) as problem:
            held = str(problem)
        before = self.holds.get(step.event_id)
        waiting = (held,) if held else ()
        self.holds[step.event_id] = Answer(at=self._clock.now(), waiting=waiting)
        if held and (before is None or before.waiting != waiting):
            logs.say(f"approval is held: {held}", event=step.event_id)

    async def _approve(self, record: Record) -> None:
        try:
            await self._service.approve(record.event.id)
        except (NotApproved, EventsUnavailable) as problem:
            self._metrics.count("approvals_total", outcome="failed")
            raise self._put_off(record, f"not approved: {problem}") from None
        self._metrics.count("approvals_total", outcome="done")
        self._failures.pop(record.event.id, None)

    def _put_off(self, record: Record, why: str) -> Failed:
        id = record.event.id
        failures = self._failures[id] = self._failures.get(id, 0) + 1
        pause_s = min(AGAIN_S_MAX, AGAIN_S * 2 ** min(failures - 1, 10))
        before = self.not_again_before.get(id)
        again_at = self._clock.now() + timedelta(seconds=pause_s)
        self.not_again_before[id] = Answer(at=again_at, waiting=(why,))
        if before is None or before.waiting != (why,):
            logs.warn(f"{why}; trying again until the event starts", event=id)
        return Failed(why)


def _purpose(step: Do | Undo) -> str:
    return "do" if isinstance(step, Do) else "undo"
