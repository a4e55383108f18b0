"""Measures the time from a commit to the frame of an open overview that shows it, in Chromium.

The peer is the same page asked for and parsed by the same browser without being told: what a
reader would wait for after pressing reload at the right moment.
"""

import asyncio
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop
from playwright.async_api import Page, async_playwright

from fairwarning.core.commands import Cancel, Schedule
from fairwarning.core.instants import HOUR_MS, MINUTE_MS
from fairwarning.core.model import EventId, EventType, InstanceName, ScopeId, operator_actor
from fairwarning.core.resources import AvailabilitySet, Member, Place
from fairwarning.node import Node, NodeSettings

ROUNDS = 40
SIZES = ((10, 0), (10_000, 1_000))
"""How many instances, and pending events, there are before the measurement."""
SCOPE_INSTANCES = 100
ME = operator_actor("benchmark")
VM = 9
SCOPE = "00000000-0000-0000-0000-000000000000/default/availability-set/set{}"

WATCH = """id => new Promise(done => {
  const look = () => {
    if (!document.querySelector(`#pending a[href$="${id}"]`)) return false;
    requestAnimationFrame(() => done(performance.timeOrigin + performance.now()));
    return true;
  };
  if (!look()) {
    const watching = new MutationObserver(() => { if (look()) watching.disconnect(); });
    watching.observe(document.body, { childList: true, subtree: true });
  }
})"""
RELOAD = """async () => {
  const began = performance.now();
  const text = await (await fetch(location.href)).text();
  new DOMParser().parseFromString(text, "text/html");
  return performance.now() - began;
}"""


@asynccontextmanager
async def fleet(folder: Path, instances: int, pending: int) -> AsyncIterator[Node]:
    store = f"sqlite:///{folder / 'live.db'}"
    async with Node(NodeSettings(store_url=store, makes_starter_fleet=False)) as node:
        size = min(SCOPE_INSTANCES, instances)
        await node.engine.declare(
            [
                AvailabilitySet(
                    name=f"set{n}",
                    members=tuple(Member(name=f"vm{n}-{each}") for each in range(size)),
                    update_domains=5,
                    place=Place(test=True),
                )
                for n in range(instances // size)
            ],
            by=ME,
        )
        scopes = instances // size
        for n in range(pending):
            await announce(node, scope=n % scopes, vm=n // scopes + 10, notice_ms=HOUR_MS)
        yield node


async def announce(
    node: Node, *, scope: int, vm: int, notice_ms: int, id: EventId | None = None
) -> float:
    """Returns the wall clock's milliseconds at which the commit was known."""
    command = Schedule(
        event_id=id or node.engine.new_id(),
        type=EventType.FREEZE,
        targets=(InstanceName(f"vm{scope}-{vm}"),),
        notice_ms=notice_ms,
    )
    await node.engine.submit(ScopeId(SCOPE.format(scope)), command, by=ME)
    return time.time() * 1000


async def measure(node: Node, page: Page) -> tuple[list[float], list[float]]:
    """Returns milliseconds from commit to frame, and of the peer, in interleaved rounds."""
    shown, peer = [], []
    for _ in range(ROUNDS):
        id = node.engine.new_id()
        watching = asyncio.create_task(page.evaluate(WATCH, id))
        # The watcher is in place once the page answers the next question.
        await page.evaluate("1")
        # The least notice comes first among what awaits approval, so it is on the screen.
        committed = await announce(node, id=id, scope=0, vm=VM, notice_ms=15 * MINUTE_MS)
        shown.append(await watching - committed)
        peer.append(await page.evaluate(RELOAD))
        await node.engine.submit(ScopeId(SCOPE.format(0)), _cancel(id), by=ME)
        await page.wait_for_function(
            'id => !document.querySelector(`#pending a[href$="${id}"]`)', arg=id
        )
    return shown, peer


async def main() -> None:
    program = shutil.which("chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for instances, pending in SIZES:
            with tempfile.TemporaryDirectory() as folder:
                async with fleet(Path(folder), instances, pending) as node:
                    page = await browser.new_page()
                    await page.goto(node.control_url)
                    shown, peer = await measure(node, page)
                    await page.close()
            print(f"{instances} instances, {pending} events: {_line(shown)}; reload {_line(peer)}")
        await browser.close()


def _cancel(id: EventId) -> Cancel:
    return Cancel(event_id=id, reason="measured")


def _line(took_ms: Sequence[float]) -> str:
    ordered = sorted(took_ms)
    worst = ordered[int(len(ordered) * 0.95)]
    return f"median {statistics.median(ordered):.0f} ms, p95 {worst:.0f} ms"


if __name__ == "__main__":
    uvloop.run(main())
