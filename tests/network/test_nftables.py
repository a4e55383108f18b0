"""The text of the firewall rules. The suite `./test network` loads them and attacks guests."""

import pytest

from fairwarning.network.network_file import parse_network_file
from fairwarning.network.nftables import RulesIncomplete, link_local, nftables_rules

BRIDGED = """\
[[network]]
name = "{name}"
bridge = "br-{name}"
[[network.guests]]
instance = "i{name}"
interface = "vnet-{name}"
mac = "52:54:00:00:00:01"
addresses = ["{address}"]
"""


def rules(*texts: str) -> str:
    return nftables_rules(parse_network_file("".join(texts)))


def test_the_bridge_is_matched_only_where_networks_share_an_address() -> None:
    one, other = (BRIDGED.format(name=name, address="10.0.0.10") for name in "ab")
    assert "ibrname" not in rules(one, BRIDGED.format(name="b", address="10.0.0.11"))
    shared = rules(one, other)
    assert 'meta ibrname "br-a" ip saddr' in shared
    assert 'meta ibrname "br-b" ip saddr' in shared


def test_each_interface_has_a_chain_whose_name_is_its_own() -> None:
    text = rules(BRIDGED.format(name="a", address="10.0.0.10").replace("vnet-a", "vnet-a.b"))
    assert '"vnet-a.b" : goto guest_vnet_2d_a_2e_b' in text
    assert "chain guest_vnet_2d_a_2e_b {" in text


def test_a_namespace_keeps_its_endpoint_behind_a_port_of_the_bridge() -> None:
    text = BRIDGED.format(name="a", address="10.0.0.10")
    assert "ip daddr 169.254.169.254 drop" in rules(text)
    assert "169.254.169.254" not in rules(text.replace("[[network]]", '[[network]]\nnamespace="x"'))


def test_no_other_port_of_the_bridge_can_take_the_endpoint_of_ipv6() -> None:
    text = BRIDGED.format(name="a", address="10.0.0.10")
    text = text.replace("[[network]]", '[[network]]\nlisten = "[fd00::fe]:80"', 1)
    shown = rules(text)
    assert "ip6 saddr { fd00::fe } drop" in shown
    assert "ip saddr { 10.0.0.10 } drop" in shown
    assert "ip6 daddr fd00::fe drop" in shown


@pytest.mark.parametrize(
    ("gone", "lacks"),
    [
        ('interface = "vnet-a"', "no interface"),
        ('mac = "52:54:00:00:00:01"', "no mac"),
        ('addresses = ["10.0.0.10"]', "no addresses; it has none in the fleet either"),
    ],
)
def test_a_guest_without_all_that_is_needed_is_named(gone: str, lacks: str) -> None:
    text = BRIDGED.format(name="a", address="10.0.0.10").replace(gone, "")
    with pytest.raises(RulesIncomplete, match=f"guest ia of network a has {lacks}"):
        rules(text)


def test_a_routed_guest_needs_no_hardware_address() -> None:
    text = rules(
        '[[network]]\nname = "r"\nguests = [{ instance = "db", interface = "tap3", '
        'addresses = ["10.0.1.11"] }]\n'
    )
    assert "table bridge" not in text
    assert '"tap3" : goto guest_tap3' in text


def test_the_link_local_address_follows_from_the_hardware_address() -> None:
    # The example of RFC 2464, section 4.
    assert link_local("34:56:78:9a:bc:de") == "fe80::3656:78ff:fe9a:bcde"
