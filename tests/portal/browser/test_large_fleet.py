"""With ten thousand instances every page stays as light as with ten."""

import pytest
from playwright.async_api import expect

from tests.operator_api.rig import Rig
from tests.portal.browser.conftest import Look
from tests.portal.browser.large_fleet import grow, keep_busy

pytestmark = pytest.mark.asyncio(loop_scope="session")
ELEMENTS_MAX = 600
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
    page = await look("/fleet", width=390, height=800)
    await expect(page.locator("#summary .figure").first).to_have_text("10048")
    event = (await rig.get("/events", phase="started"))["events"][0]
    found: dict[str, int] = {}
    for path in (*PAGES, f"/events/{event['id']}", f"/instances/{SHOP}/shop7-5"):
        await page.goto(path)
        found[path] = await page.evaluate("document.querySelectorAll('*').length")
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, f"{path} is {wide} pixels wide"
    too_many = {path: count for path, count in found.items() if count > ELEMENTS_MAX}
    assert not too_many
