"""A fleet file is read whole, and whatever is wrong with it is said with its line."""

import contextlib
import tomllib
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.core.instants import HOUR_MS, MINUTE_MS
from fairwarning.core.model import EventType, EvictionPolicy, Policy, Priority
from fairwarning.core.resources import (
    AvailabilitySet,
    CloudService,
    Orchestration,
    ScaleSet,
    VirtualMachine,
    expand,
)
from fairwarning.fleet_file.plan import plan
from fairwarning.fleet_file.problems import MISTAKES_MAX, FleetProblem
from tests.support.fleet_files import read_json, read_toml

ROOT = Path(__file__).parents[2]
FLEETS = (each for each in (ROOT / "examples").glob("*.toml") if each.name != "agent.toml")
EXAMPLES = sorted(FLEETS)
FLEET = """\
test = true

[[vm]]
name = "db"
addresses = ["10.0.0.5"]

[[availability_set]]
name = "web"
update_domains = 3
instances = [
  { name = "web-0", addresses = ["10.0.0.10"] },
  { name = "web-1", addresses = ["10.0.0.11"] },
]

[[scale_set]]
name = "workers"
orchestration = "uniform"
capacity = 2
addresses = ["10.0.1.10", "10.0.1.11"]
terminate_notice = "PT5M"
priority = "Regular"

[[cloud_service]]
name = "shop"
roles = { FrontEnd = 2, BackEnd = 1 }
"""


def problem(text: str) -> FleetProblem:
    with pytest.raises(FleetProblem) as raised:
        read_toml(text)
    return raised.value


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_good(path: Path) -> None:
    fleet = read_toml(path.read_text())
    assert fleet.resources
    assert plan([], fleet, prune=True).creates


def test_there_are_examples() -> None:
    assert {each.stem for each in EXAMPLES} >= {"laptop", "racks", "web-shop"}


def test_every_kind_is_read() -> None:
    vm, web, workers, shop = read_toml(FLEET).resources
    assert isinstance(vm, VirtualMachine)
    assert (vm.name, vm.addresses, vm.place.test, vm.place.origin) == (
        "db",
        ("10.0.0.5",),
        True,
        "file",
    )
    assert isinstance(web, AvailabilitySet)
    assert [each.name for each in web.members] == ["web-0", "web-1"]
    assert web.update_domains == 3
    assert isinstance(workers, ScaleSet)
    assert (workers.capacity, workers.terminate_notice_ms) == (2, 5 * MINUTE_MS)
    assert workers.addresses == ("10.0.1.10", "10.0.1.11")
    assert isinstance(shop, CloudService)
    assert shop.roles == {"FrontEnd": 2, "BackEnd": 1}


def test_every_key_has_its_effect() -> None:
    (vm,) = read_toml(
        """
        [[vm]]
        name = "db"
        test = true
        subscription = "s"
        resource_group = "g"
        location = "l"
        addresses = ["10.0.0.1", "fd00::1"]
        tags = { a = "b" }
        handle = "h"
        priority = "Spot"
        eviction = "Delete"
        approve = { user_reboot = true, all_instances_down = false }
        notice = { Reboot = "1h", Freeze = "PT1M" }
        driver = { type = "command", run = "/bin/true", timeout = "1m" }
        """,
        is_partial=True,
    ).resources
    assert isinstance(vm, VirtualMachine)
    (scope,) = expand(vm)
    assert scope.id == "s/g/vm/db"
    roster = scope.roster
    assert (roster.test, roster.location, roster.origin) == (True, "l", "api")
    assert (roster.driver, roster.driver_settings) == (
        "command",
        {"run": "/bin/true", "timeout": "1m"},
    )
    assert roster.policy == Policy(
        approve_user_reboot=True,
        approve_all_instances_down=False,
        notice_ms={EventType.REBOOT: HOUR_MS, EventType.FREEZE: MINUTE_MS},
    )
    (instance,) = roster.live
    assert instance.addresses == ("10.0.0.1", "fd00::1")
    assert (instance.tags, instance.handle) == ({"a": "b"}, "h")
    assert (instance.priority, instance.eviction) == (Priority.SPOT, EvictionPolicy.DELETE)


def test_what_the_top_says_holds_unless_a_resource_says_otherwise() -> None:
    first, second = read_toml(
        """
        location = "north"
        driver = { type = "command", run = "x" }
        notice = { Reboot = "1h" }
        approve = { user_redeploy = true }
        vm = [{ name = "a" }, { name = "b", location = "south", driver = "simulated" }]
        """
    ).resources
    assert (first.place.location, second.place.location) == ("north", "south")
    assert (first.place.driver, second.place.driver) == ("command", "simulated")
    assert second.place.driver_settings == {}
    assert first.policy == second.policy
    assert first.policy.approve_user_redeploy


def test_members_may_be_names_and_may_be_placed() -> None:
    (resource,) = read_toml(
        """
        [[availability_set]]
        name = "web"
        tags = { team = "a", tier = "x" }
        instances = ["plain", { name = "placed", update_domain = 4, fault_domain = 0,
                                tags = { tier = "y" } }]
        """.replace("\n                                ", "")
    ).resources
    (scope,) = expand(resource)
    plain, placed = scope.roster.live
    assert (placed.update_domain, placed.fault_domain) == (4, 0)
    assert plain.tags == {"team": "a", "tier": "x"}
    assert placed.tags == {"team": "a", "tier": "y"}


def test_a_flexible_set_read_twice_has_the_same_names() -> None:
    text = '[[scale_set]]\nname = "flex"\norchestration = "flexible"\ncapacity = 3'
    once, again = (read_toml(text).resources[0] for _ in range(2))
    assert once == again
    assert isinstance(once, ScaleSet)
    assert once.orchestration is Orchestration.FLEXIBLE
    assert [len(each) for each in once.suffixes] == [8, 8, 8]
    more, *_ = read_toml(text.replace("3", "4")).resources
    assert isinstance(more, ScaleSet)
    assert more.suffixes[:3] == once.suffixes


def test_json_is_the_same_structure() -> None:
    assert read_json(tomllib.loads(FLEET)) == read_toml(FLEET)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('name = "db"', "name = db", 4, ["not TOML", "strings are quoted"]),
        ('name = "db"', "", 3, ["`name` is missing"]),
        ('name = "db"', "name = 3", 4, ["`name` must be a string, not a whole number"]),
        ('name = "db"', 'name = "-"', 4, ["'-' is no name"]),
        ('name = "db"', 'nmae = "db"', 4, ["unknown key `nmae`", "did you mean `name`"]),
        ('name = "db"', 'name = "db"\nxyzzy = 1', 5, ["unknown key `xyzzy`", "priority"]),
        ("test = true", "tset = true", 1, ["unknown key `tset`", "did you mean `test`"]),
        ("test = true", 'test = "true"', 1, ["`test` must be true or false, not a string"]),
        ("test = true", 'subscription = "a/b"', 1, ["'a/b' is no subscription"]),
        ("test = true", 'driver = "libvrit"', 1, ["no driver is called 'libvrit'", "simulated"]),
        ("[[vm]]", "[vm]", 3, ["`vm` must be an array, not a table", "[[vm]]"]),
        ('"10.0.0.5"', '"10.0.0.05"', 5, ["'10.0.0.05' is no IP address"]),
        ('"10.0.0.5"', '"FD00::1"', 5, ["write it as 'fd00::1'"]),
        ('"10.0.0.5"', '"fe80::1"', 5, ["'fe80::1' is a link-local address", "like 'fd00::5'"]),
        ('"10.0.0.5"', "5", 5, ["must be a string, not a whole number"]),
        ('"10.0.0.5"', ", ".join(f'"10.9.0.{n}"' for n in range(17)), 5, ["use at most 16"]),
        ('["10.0.0.11"]', '[\n"10.0.0.5"]', 13, ["10.0.0.5 is declared twice", "line 5"]),
        ('"web-1"', '"web-0"', 12, ["instance web-0 is declared twice", "first in line 11"]),
        ("update_domains = 3", "update_domains = 21", 9, ["use 1 to 20"]),
        ('{ name = "web-1",', '{ name = "web-1", update_domain = 3,', 12, ["must be 0 to 2"]),
        ('{ name = "web-1",', '{ nam = "web-1",', 12, ["unknown key `nam`"]),
        ("capacity = 2", "capacity = 1001", 18, ["use 0 to 1000"]),
        ("capacity = 2", "capacity = 1", 19, ["2 addresses for 1 instances"]),
        ("capacity = 2", 'capacity = "2"', 18, ["must be a whole number, not a string"]),
        ('"uniform"', '"Uniform"', 17, ["none of uniform, flexible"]),
        ('"Regular"', '"regular"', 21, ["none of Regular, Spot"]),
        ('"Regular"', '"Spot"', 20, ["no Terminate events"]),
        ('"PT5M"', '"PT4M"', 20, ["choose from PT5M to PT15M"]),
        ('"PT5M"', '"soon"', 20, ["no ISO 8601", "choose from PT5M to PT15M"]),
        ('"PT5M"', "7", 20, ["no ISO 8601", "choose from PT5M to PT15M"]),
        ("BackEnd = 1", "BackEnd = -1", 25, ["number of instances, 0 or more"]),
        ("BackEnd = 1", "BackEnd = true", 25, ["number of instances, 0 or more"]),
        ("BackEnd = 1", "BackEnd = 99", 25, ["at most 100"]),
        ("BackEnd = 1", '"no name" = 1', 25, ["'no name' is no name"]),
        ('name = "shop"', 'name = "shop"\ntags.a = 1', 25, ["tag `a` must be a string"]),
        ('name = "shop"', 'name = "shop"\nnotice.Rebot = "1m"', 25, ["mean `Reboot`"]),
        ('name = "shop"', 'name = "shop"\nnotice.Reboot = 5', 25, ["must be a duration"]),
        ('name = "shop"', 'name = "shop"\ntest = false\nnotice.Reboot = "5m"', 26, ["15 min"]),
        ('name = "shop"', 'name = "shop"\napprove.reboot = true', 25, ["mean `user_reboot`"]),
        ('name = "shop"', 'name = "shop"\ndriver = {}', 25, ["needs a `type`"]),
        ('name = "shop"', 'name = "shop"\ndriver = { type = [1] }', 25, ["must be a string"]),
        ('name = "shop"', 'name = "shop"\ndriver = { type = "command" }', 25, ["needs 'run'"]),
        ("[[cloud_service]]", '[[vm]]\nname = "db"\n[[cloud_service]]', 24, ["twice", "line 4"]),
        ('name = "workers"', f'name = "{"w" * 64}"', 16, ["is no name"]),
        (
            'name = "workers"\norchestration = "uniform"',
            f'name = "{"w" * 36}"\norchestration = "flexible"',
            16,
            ["has 36 characters", "at most 35"],
        ),
    ],
)
def test_a_mistake_is_named_with_its_line(old: str, new: str, line: int, words: list[str]) -> None:
    assert FLEET.count(old) >= 1
    found = problem(FLEET.replace(old, new, 1))
    assert found.line == line, found
    assert not [word for word in words if word not in found.message], found
    assert str(found) == f"line {line}: {found.message}"


def test_all_mistakes_are_named_in_the_order_of_their_lines() -> None:
    found = problem(
        """\
test = "yes"
notice = { Reboot = "1s", Rebot = "1m" }
[[vm]]
nmae = "db"
addresses = ["10.0.0.05", 5, "10.0.0.1"]
approve = { user_reboot = 1, user_redeploy = 2 }
[[vm]]
handle = 3
tags = { a = 1, b = 2 }
[[scale_set]]
name = "-"
capcity = 2
addresses = ["10.0.0.7", "10.0.0.1"]
terminate_notice = "PT1M"
[[availability_set]]
name = "web"
update_domains = 0
instances = ["a", { name = "b", update_domain = 3, addresses = ["x"] }, 7, "a"]
[[cloud_service]]
name = "shop"
roles = { A = -1, B = "x", C = 1 }
addresses = ["10.0.0.8", "10.0.0.9"]
driver = "libvrit"
"""
    )
    places = [(each.line, each.pointer) for each in found.mistakes]
    assert places == [
        (1, "/test"),
        (2, "/notice/Rebot"),
        (4, "/vm/0/nmae"),
        (5, "/vm/0/addresses/1"),
        (5, "/vm/0/addresses/0"),
        (6, "/vm/0/approve/user_reboot"),
        (6, "/vm/0/approve/user_redeploy"),
        (7, "/vm/1"),
        (8, "/vm/1/handle"),
        (9, "/vm/1/tags/a"),
        (9, "/vm/1/tags/b"),
        (11, "/scale_set/0/name"),
        (12, "/scale_set/0/capcity"),
        (13, "/scale_set/0/addresses/1"),
        (14, "/scale_set/0/terminate_notice"),
        (17, "/availability_set/0/update_domains"),
        (18, "/availability_set/0/instances/2"),
        (18, "/availability_set/0/instances/1/addresses/0"),
        (18, "/availability_set/0/instances/3"),
        (21, "/cloud_service/0/roles/A"),
        (21, "/cloud_service/0/roles/B"),
        (23, "/cloud_service/0/driver"),
    ], found
    assert str(found).startswith("line 1: `test` must be true or false, not a string; line 2: ")
    assert (found.line, found.message) == (1, "`test` must be true or false, not a string")


def test_a_mistake_at_the_top_is_named_once_though_all_resources_inherit_it() -> None:
    found = problem(
        """
        driver = "libvrit"
        subscription = "a/b"
        notice = { Reboot = "1m" }
        vm = [{ name = "a" }, { name = "b" }]
        """
    )
    assert [each.line for each in found.mistakes] == [2, 3, 4]


def test_repeats_are_named_beside_other_mistakes() -> None:
    found = problem("vm = [{ name = 'a', handel = '' }, { name = 'a' }, { name = 'a' }]")
    assert [each.pointer for each in found.mistakes] == [
        "/vm/0/handel", "/vm/1/name", "/vm/2/name",
    ]  # fmt: skip


@pytest.mark.parametrize("line", ['[[vm]]\nname = "-"\n', '[[vm]]\nname = "a"\nx = 1\n'])
def test_reading_ends_after_fifty_mistakes(line: str) -> None:
    assert len(problem(line * 60).mistakes) == MISTAKES_MAX == 50


@pytest.mark.parametrize(
    "text",
    [
        '[[availability_set]]\nname = "a"\n'
        + "".join(f"[[availability_set.instances]]\nnam = {n}\n" for n in range(30_000)),
        '[[vm]]\nname = "a"\naddresses = [' + "1," * 300_000 + "]",
        '[[scale_set]]\nname = "a"\ncapacity = -9999999999\norchestration = "flexible"\n'
        + "".join(f'[[scale_set]]\nname = "s{n}"\ncapacity = 1000\n' for n in range(101)),
    ],
    ids=["instances", "addresses", "capacities"],
)
def test_a_large_file_of_mistakes_is_refused(text: str) -> None:
    assert problem(text).mistakes


@pytest.mark.parametrize("text", ['driver = "x"', 'notice.Boot = "1m"', 'location = ""'])
def test_the_top_is_checked_even_if_no_resource_rests_on_it(text: str) -> None:
    assert problem(f"\n{text}").line == 2


@pytest.mark.parametrize("text", ["vm = [", "[", 'a = "', "x = " + "[" * 3000, "a = " + "9" * 5000])
def test_a_broken_text_is_a_problem_and_not_a_crash(text: str) -> None:
    assert problem(text).message


def test_line_ends_and_marks_of_other_systems_do_not_matter() -> None:
    windows = "\ufeff" + FLEET.replace("\n", "\r\n")
    assert read_toml(windows) == read_toml(FLEET)
    assert problem(windows.replace("capacity", "capcity")).line == 18


@pytest.mark.parametrize(
    ("data", "pointer"),
    [
        ({"vm": [{"name": "a"}, {"name": "b", "addresses": ["x"]}]}, "/vm/1/addresses/0"),
        ({"vm": [{"name": "a", "a/b~": 1}]}, "/vm/0/a~1b~0"),
        ({"cloud_service": [{"name": "a", "roles": {"R": "x"}}]}, "/cloud_service/0/roles/R"),
        ({"vm": {}}, "/vm"),
        ([], ""),
        (None, ""),
        ("vm", ""),
    ],
)
def test_a_mistake_in_json_has_its_pointer(data: object, pointer: str) -> None:
    with pytest.raises(FleetProblem) as raised:
        read_json(data)
    assert (raised.value.pointer, raised.value.line) == (pointer, None)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)
KEYS = ["name", "addresses", "tags", "driver", "notice", "approve", "roles", "instances",
        "capacity", "update_domains", "terminate_notice", "test", "location"]  # fmt: skip


@given(
    st.dictionaries(
        st.sampled_from(["vm", "availability_set", "scale_set", "cloud_service", "test", "x"]),
        st.lists(st.dictionaries(st.sampled_from(KEYS), json_values, max_size=4), max_size=2)
        | json_values,
        max_size=3,
    )
)
def test_whatever_comes_is_a_fleet_or_a_problem(data: dict[str, object]) -> None:
    with contextlib.suppress(FleetProblem):
        read_json(data)


@pytest.mark.parametrize(
    "text",
    [
        "a . " * 8_000 + "a = 1",
        "'a'." * 8_000 + "a = 1",
        '"a" . ' * 8_000 + "a = 1",
        "[" + "a\t.\t" * 8_000 + "a]",
        "x = {" + "a . " * 8_000 + "a = 1}",
        "x = " + "[" * 8_000,
        "x = " + "{x=" * 8_000,
        "x = " + "1" * 2_000_000,
        "x = 0." + "1_1" * 700_000,
        "".join(f"a{number}=1\n" for number in range(250_000)),
        "x = [" + "1," * 700_000,
    ],
)
def test_what_the_parser_would_pay_dearly_for_is_refused_before_it(text: str) -> None:
    tracemalloc.start()
    try:
        found = problem(f"test = true\n\n{text}\n")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (found.line or 0) >= 3
    assert " at most " in found.message
    assert peak < 20_000_000


@pytest.mark.parametrize(
    "string",
    ['"""{}"""', "'''{}'''", '"{}"', "'{}'", '"""{}"""""', "'''{}'''''"],
)
def test_what_stands_in_a_string_costs_nothing(string: str) -> None:
    inside = "a.b=[{,#" * 100_000
    assert "vm" in problem(f"vm = {string.format(inside)}").message


def test_a_short_file_of_too_many_instances_is_refused() -> None:
    sets = "".join(f'[[scale_set]]\nname = "s{n}"\ncapacity = 1000\n' for n in range(101))
    found = problem(sets)
    assert (found.line, found.message) == (
        301,
        "a declaration has at most 100,000 instances; divide it",
    )
