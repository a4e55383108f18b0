"""A real browser, and a server on a virtual clock for each test to look at with it.

Whatever a page complains of fails its test: a script's error, or something that the
Content-Security-Policy forbids.
"""

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, async_playwright

from tests.operator_api.rig import Rig, running

ZONE = "Europe/Berlin"
"""Whoever reads is an hour or two from UTC, so that a page which forgets the zone is found out."""
PATIENCE_MS = 10_000

Look = Callable[..., Awaitable[Page]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    program = shutil.which("chromium")
    assert program is not None, "Debian's chromium is missing; run ./test portal"
    async with async_playwright() as playwright:
        # Chromium's own sandbox needs a user that is not root; it only meets our own pages.
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def rig() -> AsyncIterator[Rig]:
    """web has web-0 to web-3 in two update domains; workers three; db one. A test fleet."""
    async with running() as rig:
        yield rig


@pytest_asyncio.fixture(loop_scope="session")
async def look(chromium: Browser, rig: Rig) -> AsyncIterator[Look]:
    """`await look("/fleet", width=390, color_scheme="dark")`: a page of a browser of its own."""
    complaints: list[str] = []
    async with AsyncExitStack() as exits:

        async def opened(path: str = "/", **options: Any) -> Page:
            options = {"base_url": rig.node.control_url, **options}
            context = await new_reader(chromium, **options)
            exits.push_async_callback(context.close)
            page = await context.new_page()
            listen(page, complaints)
            await page.goto(path)
            return page

        yield opened
    assert not complaints


@pytest_asyncio.fixture(loop_scope="session")
async def page(look: Look) -> Page:
    """The overview, in a window 1280 wide."""
    return await look()


async def new_reader(
    chromium: Browser, *, width: int = 1280, height: int = 900, **options: Any
) -> BrowserContext:
    context = await chromium.new_context(
        viewport={"width": width, "height": height},
        **{"timezone_id": ZONE, "locale": "en-GB", **options},
    )
    context.set_default_timeout(PATIENCE_MS)
    return context


REFUSED = "Failed to load resource: the server responded with a status of 4"
"""Chromium's note about a page that says what was wrong with a form or an address."""


def listen(page: Page, complaints: list[str]) -> None:
    page.on("pageerror", lambda error: complaints.append(str(error)))

    def hear(said: ConsoleMessage) -> None:
        if said.type in ("error", "warning") and not said.text.startswith(REFUSED):
            complaints.append(said.text)

    page.on("console", hear)
