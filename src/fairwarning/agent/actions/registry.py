"""Maps each kind of action to the handler that does and undoes it."""

from collections.abc import Mapping

from fairwarning.agent.actions.base import ActionHandler, Context
from fairwarning.agent.actions.haproxy import HaProxyHandler
from fairwarning.agent.actions.http import request
from fairwarning.agent.actions.kubernetes import KubernetesHandler
from fairwarning.agent.actions.nginx import NginxHandler
from fairwarning.agent.actions.notify import send
from fairwarning.agent.actions.patroni import PatroniHandler
from fairwarning.agent.actions.run import run_command
from fairwarning.agent.actions.systemd import SystemdHandler
from fairwarning.agent.config.model import (
    Action,
    HaProxy,
    Http,
    Kubernetes,
    Nginx,
    Notify,
    Patroni,
    Run,
    Settings,
    Systemd,
)


class CommandHandler:
    """Handles the kinds of actions that cannot undo themselves. Undo runs the action's `undo`."""

    async def do(self, action: Action, context: Context) -> None:
        settings = action.settings
        assert isinstance(settings, Run | Http | Notify)
        await _execute(settings, context)

    async def undo(self, action: Action, context: Context) -> None:
        if action.undo is not None:
            await _execute(action.undo, context)


async def _execute(settings: Run | Http | Notify, context: Context) -> None:
    match settings:
        case Run():
            await run_command(settings, context)
        case Http():
            await request(settings, context)
        case Notify():
            await send(settings, context)


HANDLERS: Mapping[type[Settings], ActionHandler] = {
    Run: CommandHandler(),
    Http: CommandHandler(),
    Notify: CommandHandler(),
    Kubernetes: KubernetesHandler(),
    Systemd: SystemdHandler(),
    HaProxy: HaProxyHandler(),
    Nginx: NginxHandler(),
    Patroni: PatroniHandler(),
}
