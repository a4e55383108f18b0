"""A fleet file that is written from domains can be read, and what is missing is said."""

from fairwarning.core.driver_settings import DriverSettings, Setting
from fairwarning.core.resources import VirtualMachine
from fairwarning.drivers.libvirt.inventory import Guest, fleet_text
from fairwarning.fleet_file.read import read_toml

CATALOGUE = {"libvirt": DriverSettings(driver="libvirt", settings=(Setting(name="uri"),))}
URI = 'qemu+unix:///session?socket=/run/a "b"'


def guest(number: int, name: str, *addresses: str) -> Guest:
    return Guest(name=name, uuid=f"{number:08x}-0000-4000-8000-000000000000", addresses=addresses)


def imported(*guests: Guest) -> tuple[dict[str, tuple[tuple[str, ...], str]], list[str]]:
    """Returns the addresses and the handle of each instance, and what was not known."""
    text, unknown = fleet_text(URI, guests)
    fleet = read_toml(text, CATALOGUE)
    found = {}
    for resource in fleet.resources:
        assert resource.place.driver == "libvirt"
        assert resource.place.driver_settings == {"uri": URI}
        assert isinstance(resource, VirtualMachine)
        found[resource.name] = (resource.addresses, resource.handle)
    return found, unknown[:-1]


def test_each_domain_is_a_vm_with_its_addresses() -> None:
    found, unknown = imported(guest(1, "db", "127.0.0.1", "10.0.0.5", "fe80::1", "10.0.0.5"))
    assert found == {"db": (("10.0.0.5",), "")}
    assert unknown == []


def test_a_domain_without_an_address_is_named() -> None:
    found, unknown = imported(guest(1, "db"))
    assert found == {"db": ((), "")}
    assert unknown == ["db: no address is known; neither its agent nor a lease has one"]


def test_an_address_of_two_domains_is_given_to_none() -> None:
    found, unknown = imported(guest(1, "a", "10.0.0.5", "10.0.0.6"), guest(2, "b", "10.0.0.5"))
    assert found == {"a": (("10.0.0.6",), ""), "b": ((), "")}
    assert "a: 10.0.0.5 belongs to another domain too" in unknown


def test_a_name_that_no_instance_can_have_becomes_a_handle() -> None:
    found, unknown = imported(
        guest(1, "web:0", "10.0.0.1"), guest(2, "my db", "10.0.0.2"), guest(3, "Web-0", "10.0.0.3")
    )
    assert found == {
        "web-0": (("10.0.0.1",), "web:0"),
        "my-db": (("10.0.0.2",), guest(2, "").uuid),
        "Web-0-00000003": (("10.0.0.3",), "Web-0"),
    }
    assert "web-0: no instance can be called 'web:0', so choose a name" in unknown


def test_no_domains_are_an_empty_fleet() -> None:
    text, unknown = fleet_text(URI, [])
    assert read_toml(text, CATALOGUE).resources == ()
    assert unknown == []
