"""Every table can be sorted, filtered, linked and saved as it is shown."""

import json
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.operator_api.rig import Rig
from tests.portal.browser.conftest import Look
from tests.portal.browser.test_axe import fill, paths

pytestmark = pytest.mark.asyncio(loop_scope="session")

WITHOUT_TOOLS = """() => [...document.querySelectorAll("main table")].filter(table => {
  if (!table.tHead) return true;
  const tools = table.closest(".scroll").previousElementSibling;
  return table.tBodies[0].rows.length > 1 && !tools?.matches(".table-tools");
}).map(table => table.closest("[id]").id)"""


async def filled(rig: Rig, look: Look) -> Page:
    for name in ("web-2", "web-0", "db", "workers_1", "web-1"):
        await rig.schedule(name, type="Freeze" if name == "db" else "Reboot")
    return await look("/events")


async def instances(page: Page) -> list[str]:
    cells = page.locator("#list tbody tr:visible td:nth-child(4)")
    return [each.strip() for each in await cells.all_inner_texts()]


async def test_a_column_sorts_both_ways_and_the_address_remembers(look: Look, rig: Rig) -> None:
    page = await filled(rig, look)
    head = page.get_by_role("button", name="Instances")
    await head.click()
    upward = await instances(page)
    assert upward == sorted(upward)
    await head.click()
    assert await instances(page) == upward[::-1]
    again = await look(page.url)
    assert await instances(again) == upward[::-1]


async def test_rows_are_filtered_also_after_the_page_has_changed(look: Look, rig: Rig) -> None:
    page = await filled(rig, look)
    await page.get_by_label("Filter these rows").fill("freeze")
    assert await instances(page) == ["db"]
    await page.locator("h1").click()
    more = await rig.schedule("workers_0", type="Freeze")
    await expect(page.locator(f'#list a[href="/events/{more["id"]}"]')).to_be_visible()
    assert sorted(await instances(page)) == ["db", "workers_0"]


async def test_what_is_shown_can_be_saved(look: Look, rig: Rig, tmp_path: Path) -> None:
    page = await filled(rig, look)
    await page.get_by_label("Filter these rows").fill("web-")
    saved = {}
    for kind in ("CSV", "JSON"):
        async with page.expect_download() as started:
            await page.get_by_role("button", name=kind, exact=True).click()
        place = tmp_path / kind
        await (await started.value).save_as(place)
        saved[kind] = place.read_text()
    rows = json.loads(saved["JSON"])
    assert sorted(each["Instances"] for each in rows) == ["web-0", "web-1", "web-2"]
    assert {each["Type"] for each in rows} == {"Reboot"}
    assert saved["CSV"].count("\n") == 4
    assert "db" not in saved["CSV"]


async def test_every_table_of_every_page_has_a_head_and_tools(look: Look, rig: Rig) -> None:
    await fill(rig)
    page = await look("/")
    found: dict[str, list[str]] = {}
    async for path in paths(rig):
        await page.goto(path)
        found[path] = await page.evaluate(WITHOUT_TOOLS)
    assert not {path: tables for path, tables in found.items() if tables}


async def test_a_column_of_buttons_is_neither_sorted_nor_saved(
    look: Look, rig: Rig, tmp_path: Path
) -> None:
    await rig.schedule("web-0")
    await rig.schedule("db")
    page = await look("/")
    pending = page.locator("#pending")
    await expect(pending.get_by_role("button", name="Type")).to_be_visible()
    await expect(pending.get_by_role("button", name="Decide")).to_have_count(0)
    async with page.expect_download() as started:
        await pending.get_by_role("button", name="JSON", exact=True).click()
    await (await started.value).save_as(tmp_path / "saved")
    rows = json.loads((tmp_path / "saved").read_text())
    assert [*rows[0]] == ["Starts in", "Type", "Instances", "Scope", "Event"]
