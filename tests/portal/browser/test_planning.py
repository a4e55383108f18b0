"""Maintenance in a browser: planned, previewed, announced, watched, halted."""

import pytest
from playwright.async_api import Page, expect

from tests.operator_api.rig import Rig

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def plan(page: Page) -> None:
    """Up to the preview of a reboot of web."""
    await page.goto("/plan")
    await page.get_by_label("Name").fill("kernel")
    await page.get_by_label("web Availability set, 4").check()
    await page.get_by_label("Notice").fill("15m")
    await page.get_by_role("button", name="Preview").click()
    await expect(page.get_by_role("heading", name="What would happen")).to_be_visible()


async def begin(page: Page) -> None:
    await plan(page)
    await page.get_by_role("button", name="Announce", exact=True).click()
    await page.get_by_role("dialog").get_by_role("button", name="Announce").click()
    await expect(page.locator("#said")).to_contain_text("The rollout has begun.")


async def decide(page: Page, action: str) -> None:
    await page.get_by_role("button", name=action).click()
    await page.get_by_role("dialog").get_by_role("button", name=action).click()


async def test_nothing_is_announced_before_one_has_seen_the_preview(rig: Rig, page: Page) -> None:
    await plan(page)
    rows = page.locator("tbody tr")
    await expect(rows).to_have_count(2)
    await expect(rows.first).to_contain_text("web-0, web-2")
    assert (await rig.get("/events"))["events"] == []
    await page.get_by_role("button", name="Change the plan").click()
    await expect(page.get_by_label("Name")).to_have_value("kernel")
    await expect(page.get_by_label("web Availability set, 4")).to_be_checked()


async def test_a_mistake_is_said_and_what_was_written_stays(page: Page) -> None:
    await page.goto("/plan")
    await page.get_by_label("Name").fill("kernel")
    await page.get_by_role("button", name="Preview").click()
    await expect(page.get_by_role("alert")).to_contain_text("Nothing is chosen.")
    await page.get_by_label("The whole fleet").check()
    await page.get_by_label("Notice").fill("soon")
    await page.get_by_role("button", name="Preview").click()
    await expect(page.get_by_role("alert")).to_contain_text("no duration; write one like")
    await expect(page.get_by_label("Name")).to_have_value("kernel")


async def test_a_rollout_is_watched_while_it_goes_on(rig: Rig, page: Page) -> None:
    await begin(page)
    await expect(page.locator("#rollout-head")).to_contain_text("0 of 2")
    await expect(page.locator("#steps tbody tr").first).to_contain_text("Announced")
    await rig.post("/clock/advance", {"by": "40m"})
    await expect(page.locator("#rollout-head")).to_contain_text("2 of 2")
    await expect(page.locator("#rollout-head")).to_contain_text("Completed")


async def test_a_rollout_is_paused_resumed_and_cancelled(rig: Rig, page: Page) -> None:
    await begin(page)
    await decide(page, "Pause")
    await expect(page.locator("#said")).to_contain_text("paused")
    await rig.post("/clock/advance", {"by": "40m"})
    await expect(page.locator("#rollout-head")).to_contain_text("1 of 2")
    await decide(page, "Resume")
    await expect(page.locator("#steps tbody tr").nth(1)).to_contain_text("Announced")
    await decide(page, "Cancel")
    await expect(page.locator("#rollout-head")).to_contain_text("Cancelled")
    assert not (await rig.get("/events", phase="scheduled"))["events"]
