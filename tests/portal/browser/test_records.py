"""History, tokens and the way in, in a browser."""

import csv
import io
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from fairwarning.operator_api.auth import Role, Tokens
from fairwarning.operator_api.server import Tls
from tests.operator_api.rig import ME, Rig, running
from tests.operator_api.test_auth import make_certificate
from tests.portal.browser.conftest import new_reader

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_history_is_filtered_and_taken_along_as_csv(rig: Rig, page: Page) -> None:
    await rig.schedule("db")
    await rig.schedule("web-0")
    await page.goto("/history")
    await page.get_by_label("Scope").fill("db")
    await page.get_by_role("button", name="Filter").click()
    rows = page.locator("#entries tbody tr")
    await expect(rows.filter(has_text="web")).to_have_count(0)
    count = await rows.count()
    async with page.expect_download() as started:
        await page.get_by_role("link", name="Export as CSV").click()
    download = await started.value
    assert download.suggested_filename == "history.csv"
    taken = read(await download.path())
    assert len(taken) == count
    assert all("/db" in each["scope"] for each in taken)


def read(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text())))


async def test_a_token_is_shown_once_and_revoked(rig: Rig, page: Page) -> None:
    await page.goto("/settings")
    await page.get_by_label("Name").fill("ada")
    await page.get_by_label("Role").select_option("approver")
    await page.get_by_role("button", name="Make a token").click()
    secret = await page.locator("code").inner_text()
    assert secret.startswith("fw_")
    await page.get_by_role("link", name="I have copied it").click()
    row = page.get_by_role("row").filter(has_text="ada")
    await expect(row).to_contain_text("approver")
    assert secret not in await page.content()
    await row.get_by_role("button", name="Revoke").click()
    await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    await expect(page.locator("#said")).to_contain_text("revoked")
    await expect(row).to_have_count(0)


async def test_elsewhere_one_logs_in_and_sees_what_the_role_allows(
    chromium: Browser, tmp_path: Path
) -> None:
    certificate, key, _ = make_certificate(tmp_path)
    async with running(control=("0.0.0.0", 0), tls=Tls(certificate, key)) as rig:
        _, secret = await Tokens(rig.node.store, rig.node.clock).create(
            "ada", Role.VIEWER, None, by=ME, why=""
        )
        url = rig.node.control_url.replace("0.0.0.0", "127.0.0.1")
        reader = await new_reader(chromium, base_url=url, ignore_https_errors=True)
        page = await reader.new_page()
        await page.goto("/scale-sets")
        await page.get_by_label("Token").fill("fw_wrong")
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_role("alert")).to_contain_text("not valid")
        await page.get_by_label("Token").fill(secret)
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_role("heading", name="Scale sets")).to_be_visible()
        await expect(page.get_by_role("link", name="+ Create")).to_have_count(0)
        await expect(page.get_by_text("Signed in as ada (viewer)")).to_be_visible()
        await page.get_by_role("button", name="Log out").click()
        await expect(page.get_by_label("Token")).to_be_visible()
        await page.goto("/fleet")
        await expect(page.get_by_label("Token")).to_be_visible()
        await reader.close()
