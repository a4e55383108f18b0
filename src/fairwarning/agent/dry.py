"""A dry run: everything is decided and told, and nothing is done."""

from fairwarning.agent import logs
from fairwarning.agent.actions.base import Context, Doer
from fairwarning.agent.model import Action, Settings
from fairwarning.agent.service import Service


class DryDoer:
    async def do(self, action: Action, context: Context) -> None:
        logs.say(f"would do: {context.render(action.title)}", event=context.event.id)

    async def undo(self, action: Action, context: Context) -> None:
        logs.say(f"would undo: {context.render(action.title)}", event=context.event.id)


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
