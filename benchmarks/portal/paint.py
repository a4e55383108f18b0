"""Measures pages of the portal with 10,000 and 100,000 instances and 1,000 events, in Chromium.

For each page: the first contentful paint from the start of the navigation, each time in a browser
that has nothing of ours in its cache, the elements of the page, and its bytes. Then the time from
the last key of a search in the fleet to the frame that shows it, with the page's own pause of
150 ms for more keys, and from a click on another zoom of the timeline to the frame that shows it.
The peer is a plain page of the same server, which is what the browser itself takes.
`python -m benchmarks.portal.paint 10000` measures one size.
"""

import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import uvloop
from playwright.async_api import Browser, Page, async_playwright

from benchmarks.portal.live import ME, SCOPE_INSTANCES, fleet
from fairwarning.common.garbage_collection import ShortCollections
from fairwarning.core.resources import ScaleSet
from fairwarning.node import Node

SIZES = (10_000, 100_000)
PENDING = 1_000
SET = "/scale-sets/fleet0"
ROUNDS = 30
PAGES = ("/", "/events", "/fleet", "/scale-sets", SET, "/plan", "/history")
PEER = "/healthz"
PAINT = """() => new Promise(done => {
  const look = (list) => {
    const found = list.find(each => each.name === "first-contentful-paint");
    if (found) done(found.startTime);
  };
  const watching = new PerformanceObserver(list => look(list.getEntries()));
  watching.observe({ type: "paint", buffered: true });
})"""
SEARCH = """text => new Promise(done => {
  const field = document.getElementById("search");
  const began = performance.now();
  const watching = new MutationObserver(() => {
    const links = document.querySelectorAll("#resources tbody th a");
    const found = [...links].map(each => each.textContent);
    if (found.length !== 1 || found[0] !== text) return;
    watching.disconnect();
    requestAnimationFrame(() => done(performance.now() - began));
  });
  watching.observe(document.body, { childList: true, subtree: true });
  field.value = text;
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
})"""
ZOOM = """() => new Promise(done => {
  const began = performance.now();
  const watching = new MutationObserver(() => {
    if (!document.querySelector('#zoom-week[aria-current="true"]')) return;
    watching.disconnect();
    requestAnimationFrame(() => done(performance.now() - began));
  });
  watching.observe(document.body, { childList: true, subtree: true });
  document.getElementById("zoom-week").click();
})"""


class Painted(NamedTuple):
    took_ms: float
    elements: int
    size: int


async def paint(browser: Browser, base: str, path: str) -> Painted:
    context = await browser.new_context(base_url=base)
    page = await context.new_page()
    answer = await page.goto(path)
    assert answer is not None
    took = float(await page.evaluate(PAINT))
    elements = int(await page.evaluate("document.querySelectorAll('*').length"))
    size = len(await answer.body())
    await context.close()
    return Painted(took, elements, size)


async def zoom(page: Page) -> float:
    await page.goto("/?zoom=hour")
    return float(await page.evaluate(ZOOM))


async def search(page: Page, number: int) -> float:
    await page.goto("/fleet")
    return float(await page.evaluate(SEARCH, f"set{number}"))


async def main() -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for instances in [int(each) for each in sys.argv[1:]] or SIZES:
            tell(f"{instances} instances, {PENDING} events: setting up")
            with tempfile.TemporaryDirectory() as folder:
                async with fleet(Path(folder), instances, PENDING) as node:
                    await add_scale_sets(node, instances // 10_000)
                    collections = ShortCollections()  # As `serve` does.
                    collections.begin()
                    await measure(browser, node.control_url, sets=instances // SCOPE_INSTANCES)
                    collections.end()
        await browser.close()


async def add_scale_sets(node: Node, count: int) -> None:
    """Adds scale sets of 1,000 instances, which have ten placement groups each."""
    sets = [ScaleSet(name=f"fleet{n}", capacity=1_000) for n in range(count)]
    await node.engine.declare(sets, by=ME)


async def measure(browser: Browser, base: str, *, sets: int) -> None:
    took: dict[str, list[Painted]] = {each: [] for each in (PEER, *PAGES)}
    for number in range(ROUNDS):
        tell(f"  round {number + 1} of {ROUNDS}")
        for path, so_far in took.items():
            so_far.append(await paint(browser, base, path))
    for path, found in took.items():
        last = found[-1]
        tell(
            f"  {path:20} first paint {line([each.took_ms for each in found])}; "
            f"{last.elements} elements, {last.size / 1000:.0f} kB"
        )
    context = await browser.new_context(base_url=base)
    page = await context.new_page()
    # The last sets, because `set1` would find ten more, and `set99` as well if there are 1,000.
    searches = [await search(page, number) for number in range(sets - ROUNDS, sets)]
    tell(f"  search in the fleet: {line(searches)}")
    tell(f"  another zoom: {line([await zoom(page) for _ in range(ROUNDS)])}")
    await context.close()


def tell(text: str) -> None:
    """Print at once, also into a file, so that a long run shows how far it is."""
    print(text, flush=True)


def line(took_ms: Sequence[float]) -> str:
    ordered = sorted(took_ms)
    worst = ordered[int(len(ordered) * 0.95)]
    return f"median {statistics.median(ordered):.0f} ms, p95 {worst:.0f} ms"


if __name__ == "__main__":
    uvloop.run(main())
