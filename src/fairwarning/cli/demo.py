"""`fairwarning demo` shows one event from announcement to end, on the real engine and store."""

import asyncio
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import click

from fairwarning.boot import make_engine, make_store
from fairwarning.core.api_versions import NEWEST
from fairwarning.core.commands import Activate, Approve, Schedule
from fairwarning.core.document import render
from fairwarning.core.instants import MINUTE_MS, format_rfc3339
from fairwarning.core.model import (
    ENGINE,
    EventType,
    InstanceName,
    instance_actor,
    operator_actor,
)
from fairwarning.core.resources import AvailabilitySet, Member
from fairwarning.engine.clocks import VirtualClock

Tell = Callable[..., None]
_WEB = AvailabilitySet(
    name="web",
    update_domains=2,
    members=tuple(Member(name=f"web-{n}", addresses=(f"10.0.0.{10 + n}",)) for n in range(2)),
)


@click.command(epilog="Example: fairwarning demo --json | jq 'select(.document)'")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def demo(as_json: bool) -> None:
    """Show one example event, from its announcement to its end.

    The demo runs the real engine on a temporary SQLite file. Its clock is virtual, so a notice of
    15 minutes passes at once. All files are removed at the end.
    """
    with tempfile.TemporaryDirectory(prefix="fairwarning-") as folder:
        asyncio.run(_play(Path(folder) / "demo.db", _as_json if as_json else _as_text))


def _as_json(time: str, text: str, document: bytes | None = None) -> None:
    told: dict[str, object] = {"time": time, "text": text}
    if document is not None:
        told["document"] = json.loads(document)
    click.echo(json.dumps(told))


def _as_text(time: str, text: str, document: bytes | None = None) -> None:
    click.echo(f"{click.style(time[11:19], dim=True)}  {text}")
    if document is not None:
        click.echo(f"          {click.style(document.decode(), fg='cyan')}")


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
            event_id=engine.new_id(),
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
        tell(format_rfc3339(clock.now()), "The journal keeps who did what, and when:")
        for entry in await store.journal(limit=100):
            kind = type(entry.transition).__name__
            tell(format_rfc3339(entry.at_ms), f"  {kind:<16} by {entry.by}")
    finally:
        await engine.stop()
        await store.close()
