"""A dry run: everything is decided and told, and nothing is done."""

from fairwarning.agent import logs
from fairwarning.agent.actions.base import Context, Doer
from fairwarning.agent.model import Action, Settings
from fairwarning.agent.service import Service
from fairwarning.agent.steps import Approve, Do, Forget, Undo

PRETENDED = (Do, Undo, Approve, Forget)
"""Of which nobody may say that they are done."""


class DryDoer:
    async def do(self, action: Action, context: Context) -> None:
        _say("would do", action, context)

    async def undo(self, action: Action, context: Context) -> None:
        _say("would undo", action, context)


def _say(word: str, action: Action, context: Context) -> None:
    title = context.render(action.title)
    logs.say(f"{word}: {title}", event=context.event.id, action=title)


def dry_doer_of(_: Settings) -> Doer:
    return DryDoer()


class DryService(Service):
    """Polls as ever, and changes nothing at the service."""

    async def approve(self, *event_ids: str) -> None:
        for id in event_ids:
            logs.say("would approve", event=id)

    async def report(self, event_id: str) -> tuple[str, ...]:
        logs.say("would tell the other VMs that this one is ready", event=event_id)
        return await self.waiting(event_id)
