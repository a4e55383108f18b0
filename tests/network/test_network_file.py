"""The network file: what it says, and that all its mistakes are told at once."""

import pytest

from fairwarning.common.toml_table import BadFile
from fairwarning.network.network_file import (
    Guest,
    Network,
    NetworkFile,
    parse_network_file,
    with_fleet_addresses,
)

WHOLE = """\
server = "http://10.9.0.1:8169/"

[[network]]
name = "lab"
bridge = "br-lab"
namespace = "tenant-a"
listen = "169.254.169.254:8080"
router = "10.0.0.1"
option_245 = "10.0.0.2"

[[network.guests]]
instance = "web/web-0"
interface = "vnet0"
mac = "52:54:00:AB:00:01"
addresses = ["10.0.0.10", "fd00::0010"]

[[network.guests]]
instance = "db"
"""


def test_a_whole_file_is_read() -> None:
    assert parse_network_file(WHOLE) == NetworkFile(
        server="http://10.9.0.1:8169",
        networks=(
            Network(
                name="lab",
                bridge="br-lab",
                namespace="tenant-a",
                listen=("169.254.169.254", 8080),
                router="10.0.0.1",
                option_245="10.0.0.2",
                guests=(
                    Guest(
                        instance="web/web-0",
                        interface="vnet0",
                        mac="52:54:00:ab:00:01",
                        addresses=("10.0.0.10", "fd00::10"),
                    ),
                    Guest(instance="db"),
                ),
            ),
        ),
    )


def test_what_is_left_out_has_a_default() -> None:
    [network] = parse_network_file(
        '[[network]]\nname = "a"\nguests = [{ instance = "db" }]\n'
    ).networks
    assert network.listen == ("169.254.169.254", 80)
    assert network.option_245 == "169.254.169.254"
    assert (network.bridge, network.namespace, network.router) == ("", "", "")


def test_all_mistakes_are_told_with_their_lines() -> None:
    text = """\
server = "https://10.9.0.1"
[[network]]
name = "a b"
bridge = "br'; drop"
router = "fd00::1"
listen = "169.254.169.254:0"
guests = [
  { instance = "web 0", mac = "53:54:00:00:00:01", addresses = ["10.0.0"] },
  { mac = "none", interfce = "vnet0" },
]
"""
    with pytest.raises(BadFile) as bad:
        parse_network_file(text)
    found = [str(each) for each in bad.value.mistakes]
    assert [each.split(":")[0] for each in found] == [
        f"line {n}" for n in (1, 3, 4, 5, 6, 8, 8, 8, 9, 9, 9)
    ]
    assert "no IP address" in " ".join(found)
    assert "address of a group" in " ".join(found)
    assert "did you mean `interface`?" in " ".join(found)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "there is no network"),
        ("network = 3", "must be a list"),
        ('[[network]]\nname = "a"\n', "has no guests"),
        ("[[network", "not TOML"),
    ],
)
def test_a_file_without_guests_is_refused(text: str, why: str) -> None:
    with pytest.raises(BadFile, match=why):
        parse_network_file(text)


def _two(first: str, second: str) -> str:
    guest = 'guests = [{{ instance = "i{n}", {more} }}]\n'
    return "".join(
        f'[[network]]\nname = "n{n}"\n' + guest.format(n=n, more=more)
        for n, more in enumerate((first, second))
    )


def test_an_address_may_be_in_two_networks_but_not_twice_in_one() -> None:
    address = 'addresses = ["10.0.0.1"]'
    assert len(parse_network_file(_two(address, address)).networks) == 2
    x, y = (f'{{ instance = "{name}", {address} }}' for name in "xy")
    text = f'[[network]]\nname = "a"\nguests = [{x}, {y}]\n'
    with pytest.raises(BadFile, match=r"10\.0\.0\.1 belongs to x and y"):
        parse_network_file(text)


def test_an_interface_belongs_to_one_guest() -> None:
    interface = 'interface = "vnet0"'
    with pytest.raises(BadFile, match="vnet0 belongs to i0 and i1"):
        parse_network_file(_two(interface, interface))


def test_two_networks_need_two_names_and_two_places_to_listen_at() -> None:
    one = '[[network]]\nname = "a"\nnamespace = "x"\nguests = [{ instance = "i" }]\n'
    with pytest.raises(BadFile) as bad:
        parse_network_file(one + one)
    assert "two networks are called 'a'" in str(bad.value)
    assert "two networks listen at the same address" in str(bad.value)


def test_a_guest_without_addresses_gets_those_of_the_fleet() -> None:
    file = parse_network_file(WHOLE)
    [network] = with_fleet_addresses(
        file, {"db": ("10.0.0.5",), "web/web-0": ("10.0.0.99",)}
    ).networks
    assert [each.addresses for each in network.guests] == [
        ("10.0.0.10", "fd00::10"),
        ("10.0.0.5",),
    ]


def test_an_address_has_no_zone_because_rules_would_contain_its_text() -> None:
    text = (
        '[[network]]\nname = "a"\nguests = [{ instance = "b", addresses = ["fe80::1%x }\\n"] }]\n'
    )
    with pytest.raises(BadFile, match="no IP address"):
        parse_network_file(text)


def test_an_endpoint_has_no_zone() -> None:
    text = '[[network]]\nname = "a"\nlisten = "[fe80::1%x]:80"\nguests = [{ instance = "b" }]\n'
    with pytest.raises(BadFile, match="ADDRESS:PORT"):
        parse_network_file(text)
