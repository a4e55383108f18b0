"""Takes a server out of HAProxy through its runtime socket, and puts it back.

If somebody else had taken the server out before, the undo leaves it out. A restart of HAProxy
resets the server, which has the same result as the undo.
"""

import asyncio
import csv
import io
import logging
import re
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from fairwarning.agent.actions.base import ActionFailed, Context, reason, settings_of
from fairwarning.agent.config.model import Action, HaProxy

WAS = "was"
POLL_S = 0.25  # Sessions end within seconds, and HAProxy answers from memory.
_log = logging.getLogger(__name__)


class HaProxyHandler:
    async def do(self, action: Action, context: Context) -> None:
        settings, socket, server = _chosen(action, context)
        wanted = _state(settings)
        now = await _now(socket, server)
        if WAS not in (context.kept or {}):
            context.keep(WAS, now.value)
        if now is not State.MAINT:
            # A server in maintenance stays in maintenance, because `drain` is closer to use.
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


class State(StrEnum):
    READY = "ready"
    DRAIN = "drain"
    MAINT = "maint"


@dataclass(frozen=True, slots=True)
class Server:
    backend: str
    name: str

    def __str__(self) -> str:
        return f"{self.backend}/{self.name}"


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
    settings = settings_of(action, HaProxy)
    return settings, context.render(settings.socket), read_server(context.render(settings.server))


def _state(settings: HaProxy) -> State:
    try:
        return State(settings.state)
    except ValueError:
        raise ActionFailed(f"{settings.state!r} is no state; write drain or maint") from None


ANSWER_BYTES_MAX = 4 * 1024 * 1024  # Room for the statistics of thousands of servers.
CONNECT_S_MAX = 5.0  # HAProxy is on this VM or near it.
_FORCED_MAINT, _CONFIGURED_MAINT, _FORCED_DRAIN = 0x01, 0x04, 0x08
_SAFE = re.compile(r"[A-Za-z0-9_.:\-]+")
_MISSING = ("No such server.", "No such backend.", "No such proxy.", "Can't find backend.")


class NoSuchServer(ActionFailed):
    """HAProxy runs, but its configuration does not contain the server."""


def read_server(text: str) -> Server:
    """Return the server of a text `backend/name`. Raises ActionFailed for any other text.

    Special characters are refused, because they could inject commands.
    """
    backend, _, name = text.partition("/")
    if not (_SAFE.fullmatch(backend) and _SAFE.fullmatch(name)):
        raise ActionFailed(f"{text!r} is no server; write it as `backend/name`")
    return Server(backend, name)


def read_answer(command: str, server: Server, answer: str) -> str:
    """Return the answer without empty lines at both ends.

    Raises NoSuchServer if HAProxy does not know the server, and ActionFailed if the command failed.
    """
    text = answer.strip()
    if text in _MISSING:
        raise NoSuchServer(f"HAProxy has no server {server} ({text.rstrip('.')})")
    if text == "Permission denied":
        raise ActionFailed("HAProxy does not allow it; its `stats socket` needs `level admin`")
    if text and not command.startswith("show "):
        raise ActionFailed(f"HAProxy answered: {text.splitlines()[0]}")
    return text


def read_state(shown: str, server: Server) -> State:
    """Return the state of a server in the output of `show servers state`. Raises NoSuchServer.

    The output has a version, a line of names, and then a line for each server.
    """
    names, rows = [], []
    for line in shown.splitlines():
        words = line.split()
        if line.startswith("# "):
            names = words[1:]
        elif names:
            rows.append(dict(zip(names, words, strict=False)))
    admin = next((row["srv_admin_state"] for row in rows if row["srv_name"] == server.name), None)
    if admin is None:
        raise NoSuchServer(f"HAProxy has no server {server}")
    if int(admin) & (_FORCED_MAINT | _CONFIGURED_MAINT):
        return State.MAINT
    return State.DRAIN if int(admin) & _FORCED_DRAIN else State.READY


def read_sessions(shown: str, server: Server) -> int:
    """Return the number of active and queued sessions of a server, from the output of `show stat`.

    Raises NoSuchServer if the output does not have the server.
    """
    rows = csv.DictReader(io.StringIO(shown.removeprefix("# ")))
    for row in rows:
        if (row["pxname"], row["svname"]) == (server.backend, server.name):
            return int(row["scur"] or 0) + int(row["qcur"] or 0)
    raise NoSuchServer(f"HAProxy has no server {server}")


async def ask(socket: str, command: str, server: Server) -> str:
    try:
        answer = await _ask(socket, command)
    except TimeoutError:
        raise ActionFailed(f"HAProxy's socket {socket} does not answer") from None
    except OSError as problem:
        why = reason(problem)
        raise ActionFailed(f"HAProxy's socket {socket} cannot be reached: {why}") from None
    return read_answer(command, server, answer)


async def _ask(socket: str, command: str) -> str:
    async with asyncio.timeout(CONNECT_S_MAX):
        reader, writer = await _connect(socket)
        try:
            writer.write(f"{command}\n".encode())
            await writer.drain()
            return await _all(reader)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


async def _connect(socket: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = socket.rpartition(":")
    if "/" in socket or not (host and port.isdigit()):
        return await asyncio.open_unix_connection(socket)
    return await asyncio.open_connection(host.strip("[]"), int(port))


async def _all(reader: asyncio.StreamReader) -> str:
    parts, size = [], 0
    while part := await reader.read(65_536):
        parts.append(part)
        size += len(part)
        if size > ANSWER_BYTES_MAX:
            raise ActionFailed("HAProxy's answer is larger than any that it gives")
    return b"".join(parts).decode(errors="replace")
