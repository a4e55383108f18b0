"""Scale sets in a browser, with the termination notice where Azure's portal has it."""

import pytest
from playwright.async_api import Page, expect

from tests.operator_api.rig import Rig

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_one_is_made_with_a_termination_notice(rig: Rig, page: Page) -> None:
    await page.goto("/scale-sets")
    await page.get_by_role("link", name="+ Create").click()
    await page.get_by_label("Name").fill("batch")
    await page.get_by_label("Capacity").fill("3")
    await page.get_by_text("Management", exact=True).click()
    await page.get_by_label("On", exact=True).check()
    await page.get_by_label("Termination delay (minutes)").fill("10")
    await page.get_by_role("button", name="Review + create").last.click()
    await page.get_by_role("button", name="Create", exact=True).click()
    await expect(page.locator("#said")).to_contain_text("Scale set batch is made.")
    found = await rig.get("/scopes/batch")
    assert (found["capacity"], found["terminateNotice"]) == (3, "PT10M")


async def test_a_mistake_on_a_hidden_tab_is_shown(page: Page) -> None:
    await page.goto("/scale-sets/new")
    await page.get_by_text("Management", exact=True).click()
    await page.get_by_role("button", name="Review + create").last.click()
    await expect(page.get_by_label("Name")).to_be_focused()


async def test_an_existing_one_is_changed_and_its_instances_upgraded(rig: Rig, page: Page) -> None:
    await page.goto("/scale-sets")
    await page.get_by_role("link", name="workers").click()
    await page.get_by_label("Termination delay (minutes)").fill("12")
    card = page.locator("section").filter(
        has=page.get_by_role("heading", name="Instance termination")
    )
    await card.get_by_role("button", name="Save").click()
    await expect(page.locator("#said")).to_contain_text("The model is changed.")
    behind = page.locator("#behind")
    await expect(behind.get_by_role("checkbox")).to_have_count(3)
    await behind.get_by_label("workers_1").check()
    await behind.get_by_role("button", name="Upgrade the chosen ones").click()
    await expect(behind.get_by_role("checkbox")).to_have_count(2)
    await behind.get_by_role("button", name="Upgrade all").click()
    await expect(behind).to_contain_text("Every instance is on the latest model.")
    members = (await rig.get("/scopes/workers"))["instances"]
    assert {each["terminateNotice"] for each in members} == {"PT12M"}


async def test_who_goes_is_shown_before_it_goes(rig: Rig, page: Page) -> None:
    await rig.activate("workers_0")
    await page.goto("/scale-sets/workers")
    await page.get_by_label("Capacity").fill("1")
    await page.get_by_role("button", name="Preview").click()
    await expect(page.get_by_text("These 2 instances are deleted")).to_be_visible()
    assert not (await rig.get("/events"))["events"]
    await page.get_by_role("button", name="Change the size").click()
    await expect(page.locator("#said")).to_contain_text("2 instances are being deleted")
    assert len((await rig.get("/events", type="Terminate"))["events"]) == 2
