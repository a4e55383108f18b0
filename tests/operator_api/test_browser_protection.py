"""Which requests on loopback a page of another site may have sent."""

import pytest

from fairwarning.operator_api.browser_protection import refuse_foreign, refuse_foreign_page
from fairwarning.operator_api.problems import Problem


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8170",
        "localhost.",
        "127.0.0.1",
        "127.9.9.9:1",
        "[::1]",
        "[::1]:8170",
    ],
)
def test_these_are_this_machine(host: str) -> None:
    refuse_foreign({"host": host}, "http")
    refuse_foreign({"host": host, "origin": f"HTTP://{host}", "sec-fetch-site": "none"}, "http")


@pytest.mark.parametrize(
    "host",
    [
        "",
        "example.com",
        "localhost.example.com",
        "10.0.0.1",
        "[fe80::1]",
        "[::1",
        "::1:x",
        "0.0.0.0",
    ],
)
def test_every_other_host_is_foreign(host: str) -> None:
    with pytest.raises(Problem) as caught:
        refuse_foreign({"host": host}, "http")
    assert (caught.value.status, caught.value.code) == (403, "foreign-host")


@pytest.mark.parametrize(
    "more",
    [
        {"origin": "https://localhost:8170"}, {"origin": "http://localhost"}, {"origin": "null"},
        {"origin": ""}, {"sec-fetch-site": "same-site"}, {"sec-fetch-site": "cross-site"},
        {"origin": "http://localhost:8170", "sec-fetch-site": "cross-site"},
    ],
)  # fmt: skip
def test_a_page_of_another_site_is_foreign(more: dict[str, str]) -> None:
    with pytest.raises(Problem) as caught:
        refuse_foreign({"host": "localhost:8170", **more}, "http")
    assert (caught.value.status, caught.value.code) == (403, "foreign-origin")


def test_behind_a_proxy_its_public_address_is_ours_and_no_other() -> None:
    public = "https://events.example.com"
    headers = {"host": "10.0.0.1", "origin": "https://Events.example.com"}
    refuse_foreign_page(headers, "http", public)
    for url in ("", "https://other.example.com"):
        with pytest.raises(Problem):
            refuse_foreign_page(headers, "http", url)
