"""Takes a server out of HAProxy through its runtime socket, and puts it back.

A server that somebody else had taken out is left as it was. What was set is gone when HAProxy
itself is started anew; that ends in the same state as the undo.
"""

import asyncio
import logging

from fairwarning.agent.actions.base import ActionFailed, Context
from fairwarning.agent.actions.haproxy_socket import (
    NoSuchServer,
    Server,
    State,
    ask,
    read_server,
    read_sessions,
    read_state,
)
from fairwarning.agent.model import Action, HaProxy

WAS = "was"
POLL_S = 0.25

_log = logging.getLogger(__name__)


class HaProxyDoer:
    async def do(self, action: Action, context: Context) -> None:
        settings, socket, server = _chosen(action, context)
        wanted = _state(settings)
        now = await _now(socket, server)
        if WAS not in (context.kept or {}):
            context.keep(WAS, now.value)
        if now is not State.MAINT:
            # From maintenance, `drain` would bring it nearer to being used.
            await ask(socket, set_command(server, wanted), server)
        if wanted is State.MAINT:
            await ask(socket, f"shutdown sessions server {server}", server)
        if settings.wait:
            await _until_empty(socket, server)

    async def undo(self, action: Action, context: Context) -> None:
        was = (context.kept or {}).get(WAS)
        if was is None:
            return
        settings, socket, server = _chosen(action, context)
        try:
            now = await _now(socket, server)
            if now is _state(settings):
                await ask(socket, set_command(server, State(was)), server)
            elif now is not State(was):
                _log.info("somebody else has set %s to %s; it is left so", server, now)
        except NoSuchServer:
            _log.warning("HAProxy has no server %s any more, so there is none to put back", server)


def set_command(server: Server, state: State) -> str:
    return f"set server {server} state {state}"


async def _now(socket: str, server: Server) -> State:
    return read_state(await ask(socket, f"show servers state {server.backend}", server), server)


async def _until_empty(socket: str, server: Server) -> None:
    while True:
        shown = await ask(socket, f"show stat {server.backend} 4 -1", server)
        if read_sessions(shown, server) == 0:
            return
        await asyncio.sleep(POLL_S)


def _chosen(action: Action, context: Context) -> tuple[HaProxy, str, Server]:
    assert isinstance(action.settings, HaProxy)
    settings = action.settings
    return settings, context.render(settings.socket), read_server(context.render(settings.server))


def _state(settings: HaProxy) -> State:
    try:
        return State(settings.state)
    except ValueError:
        raise ActionFailed(f"{settings.state!r} is no state; write drain or maint") from None
