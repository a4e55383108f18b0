"""Around every page: strict headers, one place for words, and nobody's forms but ours."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from fairwarning.engine.protocols import StoreDown
from fairwarning.operator_api.auth import Role, Tokens
from fairwarning.operator_api.server import Tls
from fairwarning.portal.strings import english
from tests.operator_api.rig import ME, Rig, running
from tests.operator_api.test_auth import make_certificate
from tests.support.http_client import http_client
from tests.support.patience import HANG_S

PORTAL = Path(__file__).parents[2] / "src" / "fairwarning" / "portal"


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with running() as rig:
        yield rig


@pytest.fixture
async def browser(rig: Rig) -> AsyncIterator[httpx.AsyncClient]:
    async with http_client(rig.node.control_url) as client:
        yield client


async def test_a_page_is_strict_about_what_a_browser_may_load(browser: httpx.AsyncClient) -> None:
    answer = await browser.get("/")
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "style=" not in answer.text
    assert not re.search(r"<script(?![^>]*src=)", answer.text)


@pytest.mark.parametrize(
    ("asked", "led_to"),
    [
        ("/plan/announce", "/plan"),
        ("/events/4CAEA225-A741-474D-A72E-428C86FCD853/approve",
         "/events/4CAEA225-A741-474D-A72E-428C86FCD853"),
        ("/rehearse/faults/7/clear", "/rehearse"),
        ("/settings/tokens", "/settings"),
    ],
)  # fmt: skip
async def test_the_address_of_a_deed_leads_back_to_its_page(
    browser: httpx.AsyncClient, asked: str, led_to: str
) -> None:
    answer = await browser.get(asked)
    assert (answer.status_code, answer.headers["location"]) == (303, led_to)


async def test_assets_come_from_here_and_are_kept_by_their_hash(
    browser: httpx.AsyncClient,
) -> None:
    page = (await browser.get("/")).text
    found = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
    assert len(found) >= 4
    assert "http://" not in re.sub(
        r"<(code|pre)[^>]*>.*?</\1>|(?:value|data-copy)=\"[^\"]*\"", "", page, flags=re.S
    )
    for url in found:
        answer = await browser.get(url)
        assert answer.status_code == 200, url
        assert "immutable" in answer.headers["cache-control"]
    for bad in ("/static/../app.py", "/static/app.py", "/static/none.css"):
        assert (await browser.get(bad)).status_code == 404


async def test_a_foreign_host_sees_no_page(rig: Rig, browser: httpx.AsyncClient) -> None:
    answer = await browser.get("/", headers={"Host": "evil.example"})
    assert answer.status_code == 403
    assert "web-0" not in answer.text


async def test_a_form_of_another_site_is_refused(rig: Rig, browser: httpx.AsyncClient) -> None:
    event = await rig.schedule("db")
    url = f"/events/{event['id']}/approve"
    form_key = re.search(r'name="form_key" value="([0-9a-f]+)"', (await browser.get("/")).text)
    assert form_key is not None
    good = {"form_key": form_key[1]}
    for fields, headers in [
        ({"form_key": ""}, {}),
        ({"form_key": "0" * 64}, {}),
        (good, {"Origin": "https://evil.example"}),
        (good, {"Sec-Fetch-Site": "cross-site"}),
    ]:
        answer = await browser.post(url, data=fields, headers=headers)
        assert answer.status_code == 403
    found = await rig.get(f"/events/{event['id']}")
    assert found["approvals"] == []
    assert (await browser.post(url, data=good)).status_code == 303
    assert len((await rig.get(f"/events/{event['id']}"))["approvals"]) == 1


async def test_elsewhere_than_on_loopback_one_logs_in_with_a_token(tmp_path: Path) -> None:
    certificate, key, authority = make_certificate(tmp_path)
    async with running(control=("0.0.0.0", 0), tls=Tls(certificate, key)) as rig:
        _, secret = await Tokens(rig.node.store, rig.node.clock).create(
            "ada", Role.VIEWER, None, by=ME, why=""
        )
        url = rig.node.control_url.replace("0.0.0.0", "127.0.0.1")
        trust = ssl.create_default_context(cafile=str(authority))
        async with httpx.AsyncClient(base_url=url, verify=trust, timeout=HANG_S) as client:
            answer = await client.get("/events")
            assert answer.headers["location"] == "/login?next=/events"
            answer = await client.post("/events/x/approve", data={})
            assert answer.headers["location"] == "/login?next=/"
            wrong = await client.post("/login", data={"token": "fw_wrong"})
            assert wrong.status_code == 401
            right = await client.post("/login?next=//evil.example", data={"token": secret})
            assert (right.status_code, right.headers["location"]) == (303, "/")
            cookie = right.headers["set-cookie"].lower()
            assert "httponly" in cookie
            assert "secure" in cookie
            assert "samesite=strict" in cookie
            page = await client.get("/")
            assert "ada" in page.text
            assert secret not in page.text
            await client.post("/logout")
            client.cookies.clear()
            assert (await client.get("/")).status_code == 303


async def test_another_site_can_neither_log_somebody_in_nor_out(tmp_path: Path) -> None:
    certificate, key, authority = make_certificate(tmp_path)
    async with running(control=("0.0.0.0", 0), tls=Tls(certificate, key)) as rig:
        tokens = Tokens(rig.node.store, rig.node.clock)
        _, secret = await tokens.create("eve", Role.VIEWER, None, by=ME, why="")
        url = rig.node.control_url.replace("0.0.0.0", "127.0.0.1")
        trust = ssl.create_default_context(cafile=str(authority))
        async with httpx.AsyncClient(base_url=url, verify=trust, timeout=HANG_S) as client:
            for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
                for path in ("/login", "/logout"):
                    answer = await client.post(path, data={"token": secret}, headers=headers)
                    assert answer.status_code == 403
                    assert "set-cookie" not in answer.headers
            answer = await client.post("/login", data={"token": secret}, headers={"Origin": url})
            assert answer.status_code == 303


async def test_behind_a_proxy_that_ends_tls_one_logs_in_under_its_name() -> None:
    """The browser names the proxy in `Origin`, and the proxy speaks plain HTTP on loopback."""
    async with running(public_url="https://fw.example") as rig:
        tokens = Tokens(rig.node.store, rig.node.clock)
        _, secret = await tokens.create("ada", Role.VIEWER, None, by=ME, why="")
        async with http_client(rig.node.control_url) as client:
            # Whoever comes through the proxy is not on this machine, though it is.
            assert (await client.get("/api/v1/events")).status_code == 401
            assert (await client.get("/")).headers["location"] == "/login?next=/"
            given = {"token": secret}
            for origin in ("https://evil.example", "http://fw.example", "null"):
                claims = {"Origin": origin, "X-Forwarded-Host": "evil.example",
                          "X-Forwarded-Proto": origin.partition(":")[0]}  # fmt: skip
                answer = await client.post("/login", data=given, headers=claims)
                assert answer.status_code == 403, origin
            ours = {"Origin": "https://fw.example", "Sec-Fetch-Site": "same-origin"}
            answer = await client.post("/login", data=given, headers=ours)
            assert answer.status_code == 303
            assert "secure" in answer.headers["set-cookie"].lower()
            client.cookies.set("fairwarning", secret)  # It does not go over plain HTTP by itself.
            page = await client.get("/")
            assert "ada" in page.text
            form_key = re.search(r'name="form_key" value="([0-9a-f]+)"', page.text)
            assert form_key is not None
            answer = await client.post("/logout", data={"form_key": form_key[1]}, headers=ours)
            assert answer.status_code == 303


async def test_an_open_page_hears_no_more_when_its_token_is_revoked(tmp_path: Path) -> None:
    certificate, key, authority = make_certificate(tmp_path)
    async with running(control=("0.0.0.0", 0), tls=Tls(certificate, key)) as rig:
        tokens = Tokens(rig.node.store, rig.node.clock)
        token, secret = await tokens.create("ada", Role.VIEWER, None, by=ME, why="")
        url = rig.node.control_url.replace("0.0.0.0", "127.0.0.1")
        trust = ssl.create_default_context(cafile=str(authority))
        async with httpx.AsyncClient(base_url=url, verify=trust, timeout=HANG_S) as client:
            await client.post("/login", data={"token": secret})
            async with asyncio.timeout(HANG_S), client.stream("GET", "/stream") as stream:
                lines = stream.aiter_lines()
                assert (await anext(lines)).startswith("retry:")
                async for line in lines:
                    if line == "event: change":
                        break  # As soon as it listens.
                await tokens.revoke(token.id, by=ME, why="")
                assert "event: change" not in [line async for line in lines]
            assert (await client.get("/stream")).status_code == 401


async def test_an_open_page_stays_open_while_the_store_is_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key, _ = make_certificate(tmp_path)
    async with running(control=("0.0.0.0", 0), tls=Tls(certificate, key)) as rig:
        tokens = Tokens(rig.node.store, rig.node.clock)
        _, secret = await tokens.create("ada", Role.VIEWER, None, by=ME, why="")

        async def down(*_: object) -> None:
            raise StoreDown("switched off by the test")

        url = rig.node.control_url.replace("0.0.0.0", "127.0.0.1")
        async with http_client(url) as client:
            await client.post("/login", data={"token": secret})
            async with asyncio.timeout(HANG_S), client.stream("GET", "/stream") as stream:
                monkeypatch.setattr(Tokens, "caller", down)
                assert "event: change" in [line async for line in until_change(stream)]


async def until_change(stream: httpx.Response) -> AsyncIterator[str]:
    async for line in stream.aiter_lines():
        yield line
        if line == "event: change":
            return


async def test_an_open_page_hears_of_a_change(rig: Rig, browser: httpx.AsyncClient) -> None:
    async with asyncio.timeout(HANG_S), browser.stream("GET", "/stream") as stream:
        lines = stream.aiter_lines()
        assert (await anext(lines)).startswith("retry:")
        await rig.schedule("db")
        async for line in lines:
            if line == "event: change":
                break


def used_keys() -> set[str]:
    """Keys that templates and pages name in full."""
    sources = [*PORTAL.rglob("*.html"), *PORTAL.rglob("*.py")]
    text = "\n".join(each.read_text() for each in sources)
    return set(re.findall(r"""\bt\(\s*["']([a-z-]+\.[A-Za-z0-9_.-]+)["']\s*[,)]""", text))


def test_every_text_that_is_named_is_there() -> None:
    missing = used_keys() - set(english().known())
    assert not missing


def test_every_text_is_used() -> None:
    """Those that are put together, `t("phase." ~ phase)`, count by their beginning."""
    sources = [*PORTAL.rglob("*.html"), *PORTAL.rglob("*.py"), *PORTAL.rglob("*.js")]
    text = "\n".join(each.read_text() for each in sources)
    beginnings = tuple(re.findall(r"""\bt\(\s*f?["']([a-z.-]+[.-])["'{]""", text))
    used = used_keys()
    known = {key.removesuffix("-one") for key in english().known()}
    assert not {key for key in known - used if not key.startswith(beginnings)}


def test_one_of_something_is_said_in_the_singular() -> None:
    assert english()("fleet.count", count=1) == "1 instance"
    assert english()("fleet.count", count=2) == "2 instances"
    assert english()("overview.more", count=1) == "1 more"


def test_nothing_inline_and_no_asset_from_elsewhere() -> None:
    for each in PORTAL.rglob("*.html"):
        text = each.read_text()
        assert " style=" not in text, each
        assert not re.search(r"\son[a-z]+=", text), each
        assert not re.search(r"""(?:src|href)=["']https?:""", text), each
