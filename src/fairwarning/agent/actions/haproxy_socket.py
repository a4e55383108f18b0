"""HAProxy's runtime socket: one command a connection, and what its answers mean."""

import asyncio
import csv
import io
import re
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from fairwarning.agent.actions.base import ActionFailed
from fairwarning.agent.actions.reasons import reason

ANSWER_BYTES_MAX = 4 * 1024 * 1024
CONNECT_S_MAX = 5.0
_FORCED_MAINT, _CONFIGURED_MAINT, _FORCED_DRAIN = 0x01, 0x04, 0x08
_SAFE = re.compile(r"[A-Za-z0-9_.:\-]+")
_MISSING = ("No such server.", "No such backend.", "No such proxy.", "Can't find backend.")


class State(StrEnum):
    READY = "ready"
    DRAIN = "drain"
    MAINT = "maint"


class NoSuchServer(ActionFailed):
    """HAProxy runs, and its configuration does not have the server."""


@dataclass(frozen=True, slots=True)
class Server:
    backend: str
    name: str

    def __str__(self) -> str:
        return f"{self.backend}/{self.name}"


def read_server(text: str) -> Server:
    """Anything else could be read as more commands."""
    backend, _, name = text.partition("/")
    if not (_SAFE.fullmatch(backend) and _SAFE.fullmatch(name)):
        raise ActionFailed(f"{text!r} is no server; write it as `backend/name`")
    return Server(backend, name)


def read_answer(command: str, server: Server, answer: str) -> str:
    """Its text without the empty lines around. Raises ActionFailed if it is a refusal we know."""
    text = answer.strip()
    if text in _MISSING:
        raise NoSuchServer(f"HAProxy has no server {server} ({text.rstrip('.')})")
    if text == "Permission denied":
        raise ActionFailed("HAProxy does not allow it; its `stats socket` needs `level admin`")
    if text and not command.startswith("show "):
        raise ActionFailed(f"HAProxy answered: {text.splitlines()[0]}")
    return text


def read_state(shown: str, server: Server) -> State:
    """Of `show servers state`: a version, a line of names, then a line for each server."""
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
    """Of `show stat`: those that the server has, and those that wait for it."""
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
