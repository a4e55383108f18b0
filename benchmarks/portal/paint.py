"""Measures the first paint of pages with 10,000 instances and 1,000 events, in Chromium.

First contentful paint from the start of the navigation, each time in a browser that has nothing
of ours in its cache; and from the last key of a search in the fleet to the frame that shows it,
the page's own pause of 150 ms for more keys included. The peer is an empty page of the same
server, which is what the browser itself takes.
"""

import shutil
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

import uvloop
from playwright.async_api import Browser, Page, async_playwright

from benchmarks.portal.live import fleet

INSTANCES, PENDING = 10_000, 1_000
ROUNDS = 10
PAGES = ("/", "/events", "/fleet", "/plan", "/history")
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
    const found = [...document.querySelectorAll("#scopes h2 a")].map(each => each.textContent);
    if (found.length !== 1 || found[0] !== text) return;
    watching.disconnect();
    requestAnimationFrame(() => done(performance.now() - began));
  });
  watching.observe(document.body, { childList: true, subtree: true });
  field.value = text;
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
})"""


async def paint(browser: Browser, base: str, path: str) -> float:
    context = await browser.new_context(base_url=base)
    page = await context.new_page()
    await page.goto(path)
    took = float(await page.evaluate(PAINT))
    await context.close()
    return took


async def search(page: Page, number: int) -> float:
    await page.goto("/fleet")
    return float(await page.evaluate(SEARCH, f"set{number}"))


async def main() -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        with tempfile.TemporaryDirectory() as folder:
            async with fleet(Path(folder), INSTANCES, PENDING) as node:
                await measure(browser, node.control_url)
        await browser.close()


async def measure(browser: Browser, base: str) -> None:
    took: dict[str, list[float]] = {each: [] for each in (PEER, *PAGES)}
    for _ in range(ROUNDS):
        for path, so_far in took.items():
            so_far.append(await paint(browser, base, path))
    for path, found in took.items():
        print(f"first paint of {path}: {line(found)}")
    context = await browser.new_context(base_url=base)
    page = await context.new_page()
    # Numbers of two digits: `set1` would find ten more.
    print(f"search in the fleet: {line([await search(page, n) for n in range(20, 20 + ROUNDS)])}")


def line(took_ms: Sequence[float]) -> str:
    ordered = sorted(took_ms)
    worst = ordered[int(len(ordered) * 0.95)]
    return f"median {statistics.median(ordered):.0f} ms, p95 {worst:.0f} ms"


if __name__ == "__main__":
    uvloop.run(main())
