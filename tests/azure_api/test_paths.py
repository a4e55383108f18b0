"""What a path means, whoever spells it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.azure_api.paths import (
    BadPath,
    ResourcePath,
    resource_id,
    resource_path,
    same_id,
)

NAMES = st.from_regex(r"[A-Za-z0-9_.()-]{1,12}", fullmatch=True) | st.sampled_from(
    ["providers", "Providers", "subscriptions", "resourceGroups", "virtualMachines"]
)
TYPES = st.from_regex(r"[a-z]{3,12}s", fullmatch=True).filter(lambda each: each != "providers")
PAIRS = st.lists(st.tuples(TYPES, NAMES), min_size=1, max_size=3)
NAMESPACES = st.sampled_from(["Microsoft.Compute", "Microsoft.Network", "Contoso.Own"])


@st.composite
def resources(draw: st.DrawFn, parent: ResourcePath | None = None) -> ResourcePath:
    pairs = draw(PAIRS)
    subscription, group = draw(NAMES), draw(NAMES | st.just(""))
    return ResourcePath(
        subscription=parent.subscription if parent else subscription,
        group=parent.group if parent else group,
        namespace=draw(NAMESPACES),
        types=tuple(type for type, _ in pairs),
        names=tuple(name for _, name in pairs),
        parent=parent,
    )


@st.composite
def extensions(draw: st.DrawFn) -> ResourcePath:
    return draw(resources(parent=draw(resources())))


@given(resources() | extensions())
def test_an_id_is_read_as_what_it_was_made_of(path: ResourcePath) -> None:
    assert resource_path(path.id) == path


@given(resources() | extensions(), TYPES)
def test_a_word_behind_an_id_is_its_tail(path: ResourcePath, tail: str) -> None:
    found = resource_path(f"{path.id}/{tail.upper()}")
    assert (found.tail, found.id) == (tail, path.id)


@given(resources() | extensions(), st.integers(1, 3))
def test_slashes_count_once(path: ResourcePath, times: int) -> None:
    assert resource_path(path.id.replace("/", "/" * times) + "/" * (times - 1)) == path


@given(resources() | extensions())
def test_case_makes_no_difference_to_the_route_and_names_keep_theirs(path: ResourcePath) -> None:
    loud = resource_path(path.id.upper())
    assert loud.key == path.key
    assert loud.names == tuple(name.upper() for name in path.names)
    assert same_id(loud.id, path.id)


@given(st.text() | st.lists(NAMES).map("/".join))
def test_any_text_is_a_path_or_none(text: str) -> None:
    try:
        found = resource_path(text)
    except BadPath:
        return
    assert len(found.types) == len(found.names)


@pytest.mark.parametrize(
    ("text", "key", "tail"),
    [
        ("/subscriptions", "microsoft.resources", "subscriptions"),
        ("/subscriptions/S", "microsoft.resources/subscriptions", ""),
        ("/subscriptions/S/locations", "microsoft.resources/subscriptions", "locations"),
        ("/subscriptions/S/providers", "microsoft.resources/subscriptions", "providers"),
        ("/subscriptions/S/Providers/microsoft.compute", "microsoft.compute", ""),
        ("/subscriptions/S/providers/Microsoft.Compute/register", "microsoft.compute", "register"),
        (
            "/subscriptions/S/resourcegroups/G/resources",
            "microsoft.resources/subscriptions/resourcegroups",
            "resources",
        ),
        (
            "/subscriptions/S/resourceGroups/providers/providers/Microsoft.Compute//virtualMachines/v/restart",
            "microsoft.compute/virtualmachines",
            "restart",
        ),
    ],
)
def test_what_clients_ask_for(text: str, key: str, tail: str) -> None:
    found = resource_path(text)
    assert (found.key, found.tail) == (key, tail)


def test_known_words_get_azures_spelling() -> None:
    text = "/subscriptions/S/resourcegroups/G/providers/microsoft.compute/VIRTUALMACHINES/v"
    assert resource_path(text).id == resource_id("S", "G", "Microsoft.Compute/virtualMachines", "v")


def test_an_extension_knows_what_it_hangs_on() -> None:
    machine = resource_id("S", "G", "Microsoft.Compute/virtualMachines", "v")
    found = resource_path(f"{machine}/providers/Microsoft.Maintenance/scheduledevents/E")
    assert found.parent is not None
    assert found.parent.id == machine
    assert (found.group, found.name) == ("G", "E")


def test_up_is_the_resource_that_a_part_belongs_to() -> None:
    part = resource_id("S", "G", "Microsoft.Network/virtualNetworks/subnets", "net", "sub")
    network = resource_id("S", "G", "Microsoft.Network/virtualNetworks", "net")
    assert resource_path(part).up().id == network


@pytest.mark.parametrize("text", ["/tenants/x", "nonsense/1/2", "/resourceGroups/G"])
def test_what_begins_with_no_subscription_names_nothing(text: str) -> None:
    with pytest.raises(BadPath):
        resource_path(text)
