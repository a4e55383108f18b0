"""The lines for dnsmasq. The suite `./test network` gives them to a real one."""

import pytest

from fairwarning.network.dnsmasq import dnsmasq_lines
from fairwarning.network.network_file import parse_network_file


def lines(text: str) -> list[str]:
    return list(dnsmasq_lines(parse_network_file(text)))


def test_guests_get_their_lease_the_routes_and_option_245() -> None:
    text = """\
[[network]]
name = "lab"
router = "10.0.0.1"
guests = [
  { instance = "web/web-0", mac = "52:54:00:00:00:01", addresses = ["fd00::10", "10.0.0.10"] },
  { instance = "set_1", mac = "52:54:00:00:00:02", addresses = ["10.0.0.11"] },
  { instance = "no-card", addresses = ["10.0.0.12"] },
  { instance = "no-address", mac = "52:54:00:00:00:03" },
]
"""
    routes = "169.254.169.254/32,10.0.0.1,0.0.0.0/0,10.0.0.1"
    assert lines(text) == [
        "# network lab",
        f"dhcp-option=tag:lab,option:classless-static-route,{routes}",
        f"dhcp-option=tag:lab,249,{routes}",
        "dhcp-option-force=tag:lab,245,169.254.169.254",
        "dhcp-host=52:54:00:00:00:01,set:lab,10.0.0.10,[fd00::10],web-0",
        "dhcp-host=52:54:00:00:00:02,set:lab,10.0.0.11",
    ]


def test_without_a_router_the_endpoint_is_on_the_link() -> None:
    text = '[[network]]\nname = "lab"\nguests = [{ instance = "a" }]\n'
    assert "dhcp-option=tag:lab,249,169.254.169.254/32,0.0.0.0" in lines(text)


@pytest.mark.parametrize("name", ["ignore", "Infinite", "42", "12h", "7d"])
def test_a_name_that_dnsmasq_would_read_as_an_order_or_a_time_is_left_out(name: str) -> None:
    text = f"""\
[[network]]
name = "lab"
guests = [{{ instance = "{name}", mac = "52:54:00:00:00:01", addresses = ["10.0.0.10"] }}]
"""
    assert lines(text)[-1] == "dhcp-host=52:54:00:00:00:01,set:lab,10.0.0.10"
