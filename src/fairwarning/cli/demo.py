"""`fairwarning demo` shows one event from announcement to end, on the real engine and store."""

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import sleep as pause
from typing import NamedTuple

import click

from fairwarning.boot import make_engine, make_store
from fairwarning.core.api_versions import NEWEST
from fairwarning.core.commands import Activate, Approve, Schedule
from fairwarning.core.document import render
from fairwarning.core.instants import MINUTE_MS, format_rfc3339
from fairwarning.core.model import (
    ENGINE,
    EventId,
    EventType,
    InstanceName,
    instance_actor,
    operator_actor,
)
from fairwarning.core.resources import AvailabilitySet, Member
from fairwarning.engine.clocks import VirtualClock

Tell = Callable[..., None]
PAUSE_S = 1.8
"""How long each scene stands on a terminal before the next one. All together take ten seconds."""
EVENT_ID = EventId("602D9444-D2CD-49C7-8624-8643E7171297")
_COLOURS = {
    "Scheduled": "yellow",
    "Approved": "green",
    "Started": "magenta",
    "Completed": "green",
    "dim": "bright_black",
    "document": "cyan",
}
_SHOWN = ("EventType", "EventStatus", "Resources")
"""The members of an event that are shown besides NotBefore. With --json all are."""
_WEB = AvailabilitySet(
    name="web",
    update_domains=2,
    members=tuple(Member(name=f"web-{n}", addresses=(f"10.0.0.{10 + n}",)) for n in range(2)),
)


class Part(NamedTuple):
    """A piece of a line, and what it is: a key of the colours, or an empty text."""

    text: str
    kind: str = ""


@click.command(epilog="Example: fairwarning demo --json | jq 'select(.document)'")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def demo(as_json: bool) -> None:
    """Show one example event, from its announcement to its end.

    The demo runs the real engine on a temporary SQLite file, without a server. Its clock is
    virtual, so a notice of 15 minutes passes at once. On a terminal it takes ten seconds. All files
    are removed at the end.
    """
    play(_as_json if as_json else _as_text)


def play(tell: Tell) -> None:
    """Run the demo, and call `tell` with the time, the text and the document of each scene."""
    with tempfile.TemporaryDirectory(prefix="fairwarning-") as folder:
        asyncio.run(_play(Path(folder) / "demo.db", tell))


def _as_json(time: str, text: str, document: bytes | None = None, *, is_scene: bool = True) -> None:
    told: dict[str, object] = {"time": time, "text": text}
    if document is not None:
        told["document"] = json.loads(document)
    click.echo(json.dumps(told))


def _as_text(time: str, text: str, document: bytes | None = None, *, is_scene: bool = True) -> None:
    for parts in lines_of(time, text, document):
        pieces = (click.style(each.text, fg=_COLOURS.get(each.kind)) for each in parts)
        click.echo("".join(pieces))
    if is_scene and sys.stdout.isatty():
        pause(PAUSE_S)


def lines_of(time: str, text: str, document: bytes | None = None) -> list[list[Part]]:
    """Return the lines of a scene, at most 100 columns wide."""
    words = text.split(" ")
    # Only kinds of transitions are coloured, and they begin with a capital.
    parts = [Part(word, word if word.istitle() and word in _COLOURS else "") for word in words]
    spaced = [each for part in parts for each in (part, Part(" "))][:-1]
    lines = [[Part(f"{time[11:19]}  ", "dim"), *spaced]]
    if document is not None:
        lines += [[Part(f"          {each}", "document")] for each in _document_lines(document)]
    return lines


def _document_lines(document: bytes) -> list[str]:
    """Return the document as a few lines of JSON, without members that the demo can spare."""
    found = json.loads(document)
    begin = f'{{"DocumentIncarnation": {found["DocumentIncarnation"]}, "Events": ['
    if not found["Events"]:
        return [f"{begin}]}}"]
    (event,) = found["Events"]
    first = json.dumps({name: event[name] for name in _SHOWN})
    rest = json.dumps({"NotBefore": event["NotBefore"]})
    return [begin, f"  {first[:-1]},", f"   {rest[1:-1]}, …}}]}}"]


async def _play(path: Path, tell: Tell) -> None:
    clock = VirtualClock()
    store = make_store(f"sqlite:///{path}", clock)
    await store.open()
    engine = make_engine(store, clock)
    operator, web_0 = operator_actor("you"), instance_actor(InstanceName("web-0"))

    async def show(text: str) -> None:
        scope = await store.read(scope_id)
        tell(format_rfc3339(clock.now()), text, render(scope, NEWEST))

    try:
        await engine.start()
        (scope,) = await engine.declare([_WEB], by=operator)
        scope_id = scope.id
        await engine.submit(scope_id, Activate(), by=ENGINE)
        await show("web-0 asks for its document for the first time. Nothing is planned.")
        reboot = Schedule(
            event_id=EVENT_ID,
            type=EventType.REBOOT,
            targets=(InstanceName("web-0"),),
            duration_s=40,
        )
        await engine.submit(scope_id, reboot, by=operator)
        await show("You schedule a reboot of web-0. Every instance of the set sees it coming.")
        await clock.advance(4 * MINUTE_MS)
        tell(format_rfc3339(clock.now()), "web-0 drains: connections finish, no new ones come.")
        approval = Approve(event_id=reboot.event_id, by=web_0)
        await engine.submit(scope_id, approval, by=web_0)
        await show("web-0 approves. Nobody has to wait for the other eleven minutes.")
        await clock.advance(MINUTE_MS)
        await show("The reboot is over. The event is gone, and web-0 takes load again.")
        tell(
            format_rfc3339(clock.now()), "The journal keeps who did what, and when:", is_scene=False
        )
        for entry in await store.journal(limit=100):
            kind = type(entry.transition).__name__
            tell(format_rfc3339(entry.at_ms), f"  {kind} by {entry.by}", is_scene=False)
    finally:
        await engine.stop()
        await store.close()
