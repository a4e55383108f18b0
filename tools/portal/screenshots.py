"""Takes pictures of the portal's pages.

    .venv/bin/python tools/portal/screenshots.py          those in docs/screenshots again
    .venv/bin/python tools/portal/screenshots.py FOLDER   all: light and dark, 1280 and 390 wide

Needs the extra `portal-test` and Debian's chromium, as ./test portal does.
"""

import asyncio
import logging
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.async_api import Browser, Page, async_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.portal.sample_fleet import Life, living

DOCS = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTHS = (1280, 390)
HEIGHT_MAX = 2400
COLOURS = 256
"""A palette of this size is enough for text and few colours, and halves the bytes."""


async def pages(life: Life) -> dict[str, str]:
    events = (await life.api.get("/events", params={"phase": "scheduled"})).json()["events"]
    redeploy = next(each for each in events if each["type"] == "Redeploy")
    rollouts = (await life.api.get("/rollouts")).json()["rollouts"]
    rollout = next(each for each in rollouts if each["phase"] == "running")
    web = (await life.api.get("/scopes/web")).json()["id"]
    workers = (await life.api.get("/scopes/workers")).json()["id"]
    return {
        "overview": "/",
        "events": "/events",
        "event": f"/events/{redeploy['id']}",
        "fleet": "/fleet",
        "scope": f"/fleet/{web}",
        "instance": f"/instances/{web}/web-2",
        "plan": "/plan",
        "rollouts": "/rollouts",
        "rollout": f"/rollouts/{rollout['id']}",
        "scale-sets": "/scale-sets",
        "scale-set": f"/scale-sets/{workers}",
        "scale-set-new": "/scale-sets/new",
        "rehearse": "/rehearse",
        "history": "/history",
        "settings": "/settings",
    }


async def rehearse(life: Life) -> None:
    """Creates what the pages show beside events: tokens, notifications, watched requests."""
    for name, role in (("ada", "admin"), ("grace", "operator"), ("dashboard", "viewer")):
        await life.post("/tokens", {"name": name, "role": role, "expires": "90d"})
    await life.post("/notifications", {"name": "ops-webhook", "kind": "webhook",
                                 "url": "https://hooks.shop.invalid/fairwarning"})  # fmt: skip
    await life.post("/requests/watch")
    await life.post("/scopes/workers/model", {"terminateNotice": "PT10M"})
    await life.poll_all()


async def play(page: Page) -> None:
    await page.goto("/rehearse")
    await page.locator("#scenario-neighbour > summary").click()
    card = page.locator("#scenario-neighbour")
    await card.get_by_label("In the part of web-1").fill("db-replica")
    await card.get_by_label("How fast").select_option("600")
    await card.get_by_role("button", name="Play it").click()
    await page.locator("#run .badge.run-ended").wait_for(timeout=60_000)


async def shoot(browser: Browser, base: str, name: str, path: str, folder: Path) -> None:
    for scheme in SCHEMES:
        for width in WIDTHS:
            file = folder / f"{name}-{scheme}-{width}.png"
            if folder == DOCS and not file.exists():
                continue
            context = await browser.new_context(
                base_url=base, viewport={"width": width, "height": 800}, locale="en-GB",
                timezone_id="Europe/Berlin", color_scheme=scheme,
            )  # fmt: skip
            page = await context.new_page()
            await page.goto(path)
            # A second time, because only then the server knows the reader's time zone.
            await page.goto(path)
            await page.evaluate("document.fonts.ready")
            height = int(await page.evaluate("document.documentElement.scrollHeight"))
            await page.screenshot(
                path=file, full_page=True,
                clip={"x": 0, "y": 0, "width": width, "height": min(height, HEIGHT_MAX)},
            )  # fmt: skip
            shrink(file)
            await context.close()


def shrink(file: Path) -> None:
    picture = Image.open(file).convert("RGB")
    # The commonest colours as they are: a palette of averages would tint what is one colour.
    pixels = picture.tobytes()
    counts = Counter(pixels[at : at + 3] for at in range(0, len(pixels), 3))
    palette = Image.new("P", (1, 1))
    palette.putpalette(b"".join(colour for colour, _ in counts.most_common(COLOURS)))
    picture.quantize(palette=palette, dither=Image.Dither.NONE).save(file, optimize=True)


async def main(folder: Path) -> None:
    logging.disable()
    program = shutil.which("chromium")
    async with async_playwright() as playwright, living() as life:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        await rehearse(life)
        base = life.node.control_url
        shown = await pages(life)
        for name in [each for each in shown if each != "rehearse"]:
            await shoot(browser, base, name, shown[name], folder)
        context = await browser.new_context(base_url=base)
        await play(await context.new_page())
        fault = {"kind": "slow", "instances": ["checkout-2"], "delay": "1s", "count": 5}
        await life.post("/faults", fault)
        await life.poll_all()
        await shoot(browser, base, "rehearse", shown["rehearse"], folder)
        await browser.close()


if __name__ == "__main__":
    chosen = Path(sys.argv[1]) if sys.argv[1:] else DOCS
    chosen.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(chosen))
