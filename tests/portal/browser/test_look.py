"""For every reader: light and dark, by keyboard, on a phone, in the own time zone."""

import pytest
from playwright.async_api import Page, expect

from fairwarning.core.model import EventType, Phase
from tests.operator_api.rig import Rig
from tests.portal.browser.conftest import Look

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHIPS = [
    *(f"badge type-{each.lower()}" for each in EventType),
    *(f"badge phase-{each}" for each in Phase),
    *(f"badge rollout-{each}" for each in ("running", "paused", "announced", "started",
                                           "completed", "failed", "cancelled", "waiting")),
    *(f"badge run-{each}" for each in ("playing", "ended", "unmet", "failed")),
    *(f"cell {each}" for each in ("running", "scheduled", "started", "down")),
    "badge clock",
]  # fmt: skip
CONTRAST = """chips => {
  const light = color => {
    const [r, g, b] = color.match(/[0-9.]+/g).slice(0, 3).map(Number).map(each => each / 255)
      .map(each => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return Object.fromEntries(chips.map(chip => {
    const element = document.createElement("span");
    element.className = chip;
    document.querySelector("main").append(element);
    const { color, backgroundColor } = getComputedStyle(element);
    const [dark, pale] = [light(color), light(backgroundColor)].sort((a, b) => a - b);
    return [chip, (pale + 0.05) / (dark + 0.05)];
  }));
}"""


async def ground(page: Page) -> str:
    return str(await page.evaluate("getComputedStyle(document.body).backgroundColor"))


async def test_the_theme_that_is_chosen_is_kept(page: Page) -> None:
    before = await ground(page)
    await page.get_by_label("Theme").select_option("dark")
    dark = await ground(page)
    assert dark != before
    await page.goto("/settings")
    assert await ground(page) == dark
    await expect(page.get_by_label("Theme")).to_have_value("dark")
    await page.get_by_label("Theme").select_option("auto")
    assert await ground(page) == before


async def test_a_dark_system_has_dark_pages(look: Look) -> None:
    light, dark = await look(color_scheme="light"), await look(color_scheme="dark")
    assert await ground(light) != await ground(dark)


async def test_times_are_the_readers_with_utc_on_hover(rig: Rig, look: Look) -> None:
    event = await rig.schedule("db")
    page = await look(f"/events/{event['id']}", timezone_id="Asia/Kolkata")
    shown = page.locator(f'time[datetime^="{event["notBefore"][:19]}"][data-when="both"]').first
    hours, minutes = map(int, event["notBefore"][11:16].split(":"))
    local = (hours * 60 + minutes + 330) % 1440
    await expect(shown).to_contain_text(f"{local // 60:02}:{local % 60:02}")
    assert event["notBefore"][11:19] + " UTC" in (await shown.get_attribute("title") or "")


async def test_a_deed_needs_no_mouse(rig: Rig, page: Page) -> None:
    event = await rig.schedule("db")
    await page.goto(f"/events/{event['id']}")
    button = page.get_by_role("button", name="Approve", exact=True)
    await tab_to(page, "Approve")
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await expect(button).to_be_focused()
    assert (await rig.get(f"/events/{event['id']}"))["approvals"] == []
    await page.keyboard.press("Enter")
    await tab_to(page, "Approve")
    await page.keyboard.press("Enter")
    await expect(page.locator("#said")).to_contain_text("Approved")
    assert len((await rig.get(f"/events/{event['id']}"))["approvals"]) == 1


async def tab_to(page: Page, label: str) -> None:
    for _ in range(60):
        await page.keyboard.press("Tab")
        if await page.evaluate("document.activeElement.textContent.trim()") == label:
            return
    raise AssertionError(f"nobody comes to {label!r} by Tab")


async def test_the_first_stop_leads_past_the_menu(page: Page) -> None:
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#content")).to_be_focused()


async def test_on_a_phone_the_menu_is_folded(look: Look) -> None:
    page = await look("/", width=390, height=800)
    fleet = page.get_by_role("navigation").get_by_role("link", name="Fleet")
    await expect(fleet).to_be_hidden()
    await page.get_by_text("Menu", exact=True).click()
    await fleet.click()
    await expect(page.get_by_role("heading", name="Fleet", level=1)).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_chip_is_readable(look: Look, scheme: str) -> None:
    page = await look("/", color_scheme=scheme)
    found = await page.evaluate(CONTRAST, CHIPS)
    assert len(found) == len(CHIPS)
    assert not {chip: ratio for chip, ratio in found.items() if ratio < 4.5}


async def test_on_a_phone_what_is_pressed_is_large_enough(rig: Rig, look: Look) -> None:
    await rig.schedule("web-0")
    await rig.schedule("db")
    page = await look("/", width=390, height=800)
    small = await page.evaluate(
        """() => [...document.querySelectorAll("main button:not(.sort), main input, .zoom a")]
          .filter(each => each.checkVisibility() && each.type !== "hidden")
          .filter(each => Math.min(each.offsetWidth || 99, each.offsetHeight || 99) < 24)
          .map(each => each.outerHTML)"""
    )
    assert not small
