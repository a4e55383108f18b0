"""Every kind of action, and who does it."""

from collections.abc import Mapping

from fairwarning.agent.actions.base import Context, Doer
from fairwarning.agent.actions.haproxy import HaProxyDoer
from fairwarning.agent.actions.http import request
from fairwarning.agent.actions.kubernetes import KubernetesDoer
from fairwarning.agent.actions.nginx import NginxDoer
from fairwarning.agent.actions.notify import send
from fairwarning.agent.actions.run import run_command
from fairwarning.agent.actions.systemd import SystemdDoer
from fairwarning.agent.model import (
    Action,
    HaProxy,
    Http,
    Kubernetes,
    Nginx,
    Notify,
    Run,
    Settings,
    Systemd,
)


class ToldDoer:
    """Does what it is told, and undoes only as it is told: by the action's `undo`."""

    async def do(self, action: Action, context: Context) -> None:
        settings = action.settings
        assert isinstance(settings, Run | Http | Notify)
        await _carry_out(settings, context)

    async def undo(self, action: Action, context: Context) -> None:
        if action.undo is not None:
            await _carry_out(action.undo, context)


async def _carry_out(settings: Run | Http | Notify, context: Context) -> None:
    match settings:
        case Run():
            await run_command(settings, context)
        case Http():
            await request(settings, context)
        case Notify():
            await send(settings, context)


DOERS: Mapping[type[Settings], Doer] = {
    Run: ToldDoer(),
    Http: ToldDoer(),
    Notify: ToldDoer(),
    Kubernetes: KubernetesDoer(),
    Systemd: SystemdDoer(),
    HaProxy: HaProxyDoer(),
    Nginx: NginxDoer(),
}
