"""axe finds no serious or critical fault on any page, light or dark, wide or narrow."""

from collections.abc import AsyncIterator
from importlib.resources import files

import pytest
from playwright.async_api import Page

from tests.operator_api.rig import Rig
from tests.portal.browser.conftest import Look

pytestmark = pytest.mark.asyncio(loop_scope="session")
AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
RUN = "() => axe.run(document, { resultTypes: ['violations'] })"
WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


async def paths(rig: Rig) -> AsyncIterator[str]:
    """Every page, with something on it."""
    for path in ("/", "/events", "/fleet", "/plan", "/rollouts", "/scale-sets", "/rehearse",
                 "/history", "/settings", "/scale-sets/new", "/scale-sets/workers",
                 "/events?scope=nowhere", "/events/none"):  # fmt: skip
        yield path
    event = (await rig.get("/events", phase="scheduled"))["events"][0]
    yield f"/events/{event['id']}"
    rollout = (await rig.get("/rollouts"))["rollouts"][0]
    yield f"/rollouts/{rollout['id']}"
    scope = (await rig.get("/instances/web-0"))["scope"]
    yield f"/fleet/{scope}"
    yield f"/instances/{scope}/web-0"


async def fill(rig: Rig) -> None:
    await rig.activate("web-0", "workers_1")
    ended = await rig.schedule("db", duration="10s")
    await rig.post(f"/events/{ended['id']}/approve")
    await rig.post("/clock/advance", {"by": "5m"})
    await rig.schedule("web-1")
    await rig.post("/rollouts", {"type": "Freeze", "scopes": ["workers"], "name": "hosts"}, 201)
    await rig.post("/instances/workers_0/delete", {}, 202)
    await rig.post("/faults", {"kind": "slow", "instances": ["web-0"]}, 201)


async def faults_of(page: Page) -> list[str]:
    await page.evaluate(AXE)
    found = await page.evaluate(RUN)
    return [
        f"{page.url}: {each['id']}: {each['nodes'][0]['html'][:200]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
async def test_no_page_has_a_serious_fault(rig: Rig, look: Look, scheme: str, width: int) -> None:
    await fill(rig)
    page = await look(color_scheme=scheme, width=width)
    found: list[str] = []
    async for path in paths(rig):
        await page.goto(path)
        found += await faults_of(page)
    assert not found


@pytest.mark.parametrize("width", [390, 1600])
async def test_no_page_is_wider_than_its_screen(rig: Rig, look: Look, width: int) -> None:
    await fill(rig)
    page = await look(width=width)
    async for path in paths(rig):
        await page.goto(path)
        assert not await page.evaluate(WIDER), path
