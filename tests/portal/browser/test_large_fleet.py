"""With ten thousand instances every page stays as light as with ten."""

import pytest
from playwright.async_api import Page, expect

from tests.operator_api.rig import Rig
from tests.portal.browser.conftest import Look
from tests.portal.browser.large_fleet import grow, keep_busy

pytestmark = pytest.mark.asyncio(loop_scope="session")
ELEMENTS_MAX = 600
WIDTH = 390
SHOP = "00000000-0000-0000-0000-000000000000/default/availability-set/shop7"
PAGES = ("/", "/?zoom=hour", "/?zoom=day", "/?zoom=week", "/?zoom=all", "/events", "/fleet",
         "/fleet?search=shop", f"/fleet/{SHOP}", "/plan", "/rollouts", "/scale-sets",
         "/scale-sets/new", "/scale-sets/fleet0", "/scale-sets/fleet1", "/rehearse", "/history",
         "/settings", "/search?q=shop1")  # fmt: skip


async def test_no_page_has_more_than_600_elements_nor_is_wider_than_a_phone(
    rig: Rig, look: Look
) -> None:
    await grow(rig)
    await keep_busy(rig)
    page = await look("/fleet", width=WIDTH, height=800)
    await expect(page.locator("#summary .figure").first).to_have_text("10,048")
    event = (await rig.get("/events", phase="started"))["events"][0]
    rollout = (await rig.get("/rollouts"))["rollouts"][0]
    found: dict[str, tuple[int, int]] = {}
    for path in (*PAGES, f"/events/{event['id']}", f"/instances/{SHOP}/shop7-5",
                 f"/rollouts/{rollout['id']}"):  # fmt: skip
        await page.goto(path)
        found[path] = await size_of(page)
    for start, button in (("/scale-sets/fleet0", "Delete"), ("/plan", "Preview")):
        await page.goto(start)
        if start == "/plan":
            await page.get_by_label("The whole fleet").check()
        await page.get_by_role("button", name=button).click()
        await expect(page.locator("body")).to_have_attribute("data-answer", "")
        found[f"{start}: {button}"] = await size_of(page)
    await page.goto("/")
    for box in await page.get_by_role("checkbox").all():
        await box.check()
    await page.get_by_role("button", name="Approve the chosen ones").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Approve 8 events?")
    found["approve"] = await size_of(page)
    assert not {path: size for path, size in found.items() if size[0] > ELEMENTS_MAX}
    assert not {path: size for path, size in found.items() if size[1] > WIDTH}


async def size_of(page: Page) -> tuple[int, int]:
    """Count the elements of the page, and measure its width."""
    elements = await page.evaluate("document.querySelectorAll('*').length")
    return int(elements), int(await page.evaluate("document.documentElement.scrollWidth"))
