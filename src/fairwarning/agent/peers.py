"""Finds out which VMs of an event are ready.

Fairwarning's endpoint knows this. With another service, the VMs use a directory that all of them
share, or each agent asks the agents of the other VMs.
"""

import asyncio
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, unquote

from fairwarning.agent.client import NotFairwarning
from fairwarning.agent.config.model import Peers
from fairwarning.client.connections import AsyncConnection
from fairwarning.client.http import Address, Broken
from fairwarning.client.model import Event, EventsUnavailable
from fairwarning.client.polling import Request

ASK_S_MAX = 5.0  # Another agent answers from memory; if it takes longer, it counts as down.


class PeersUnknown(Exception):
    """It is not known now which VMs are ready. The message says why."""


class PeerService(Protocol):
    """The part of Fairwarning's metadata endpoint that knows which VMs are ready."""

    async def report(self, event_id: str) -> tuple[str, ...]: ...
    async def waiting(self, event_id: str) -> tuple[str, ...]: ...


async def report(
    service: PeerService, peers: Peers | None, event: Event, me: str
) -> tuple[str, ...]:
    """Report that this VM (`me`) is ready, and return the VMs of the event that are not.

    Raises PeersUnknown if this cannot be found out now.
    """
    try:
        return await service.report(event.id)
    except NotFairwarning:
        if peers is not None and peers.directory:
            _write(_folder(peers, event), me)
        return await _ask(peers, event, me)
    except EventsUnavailable as problem:
        raise PeersUnknown(str(problem)) from None


async def waiting(
    service: PeerService, peers: Peers | None, event: Event, me: str
) -> tuple[str, ...]:
    """Return the VMs of the event that are not ready.

    Raises PeersUnknown if this cannot be found out now.
    """
    try:
        return await service.waiting(event.id)
    except NotFairwarning:
        return await _ask(peers, event, me)
    except EventsUnavailable as problem:
        raise PeersUnknown(str(problem)) from None


def forget(peers: Peers | None, event: Event, me: str) -> None:
    """Remove this VM's file for the event, and the event's folder if it is then empty."""
    if peers is None or not peers.directory:
        return
    folder = _folder(peers, event)
    with suppress(OSError):
        (folder / quote(me, safe="")).unlink(missing_ok=True)
        folder.rmdir()


async def _ask(peers: Peers | None, event: Event, me: str) -> tuple[str, ...]:
    if peers is None:
        raise PeersUnknown(
            'the service does not know who is ready; set `peers` in [approve], or shared = "leader"'
        )
    if peers.directory:
        ready = _read(_folder(peers, event))
    else:
        answers = (_ask_one(url, event.id) for url in peers.urls)
        ready = {me}.union(*await asyncio.gather(*answers))
    return tuple(name for name in event.resources if name not in ready)


def _folder(peers: Peers, event: Event) -> Path:
    return Path(peers.directory) / quote(event.id, safe="")


def _write(folder: Path, me: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / quote(me, safe=""), "wb") as file:
            os.fsync(file.fileno())
    except OSError as problem:
        raise PeersUnknown(f"{folder} cannot be written: {problem.strerror}") from None


def _read(folder: Path) -> set[str]:
    try:
        names = set(os.listdir(folder))
    except OSError as problem:
        raise PeersUnknown(f"{folder} cannot be read: {problem.strerror}") from None
    return {unquote(name) for name in names}


async def _ask_one(url: str, event_id: str) -> set[str]:
    """Return the VMs that an agent reports as ready. Without a valid answer, the set is empty."""
    link = AsyncConnection(Address(url))
    target = f"/drained?EventId={quote(event_id)}"
    request = Request(method="GET", target=target, headers={}, timeout_s=ASK_S_MAX)
    try:
        response = await link.ask(request)
        found = json.loads(response.body)["Drained"] if response.status == 200 else []
        return {name for name in found if isinstance(name, str)}
    except (Broken, ValueError, KeyError, TypeError):
        return set()
    finally:
        await link.close()
