"""Which resources a template asks for, and in which order."""

from typing import Any

import pytest

from tests.azure_api.templates.plans import NETWORK, body, names, network, plan, refusal


def balancer(name: str = "lb", **more: Any) -> dict[str, Any]:
    return network(name, **more) | {"type": "Microsoft.Network/loadBalancers"}


def test_a_resource_says_all_but_what_is_meant_for_arm() -> None:
    found = plan(
        network(location="[resourceGroup().location]", tags={"a": "b"}, comments="x", dependsOn=[])
    )
    assert [each.id for each in found.resources] == [f"{NETWORK}/virtualNetworks/net"]
    assert found.resources[0].api_version == "2022-01-01"
    assert body(found, "net") == {"location": "west", "tags": {"a": "b"}}


def test_a_child_comes_after_its_parent() -> None:
    rule = network("lb/rule") | {"type": "Microsoft.Network/loadBalancers/inboundNatRules"}
    found = plan(rule, balancer())
    assert [each.id for each in found.resources] == [
        f"{NETWORK}/loadBalancers/lb",
        f"{NETWORK}/loadBalancers/lb/inboundNatRules/rule",
    ]


def test_a_child_within_its_parent_has_its_type_and_name() -> None:
    subnet = {"type": "subnets", "name": "[concat('s', 1)]", "apiVersion": "2022-01-01"}
    found = plan(network(resources=[subnet]))
    assert found.resources[1].id == f"{NETWORK}/virtualNetworks/net/subnets/s1"
    assert found.resources[1].type == "Microsoft.Network/virtualNetworks/subnets"


@pytest.mark.parametrize(
    "word",
    [
        "Microsoft.Network/virtualNetworks/first",
        "MICROSOFT.network/virtualnetworks/FIRST",
        "[concat('Microsoft.Network/virtualNetworks/', 'first')]",
        "[resourceId('microsoft.network/virtualNetworks', 'First')]",
        "first",
    ],
)
def test_a_resource_comes_after_what_it_depends_on(word: str) -> None:
    assert names(plan(network("second", dependsOn=[word]), network("first"))) == ["first", "second"]


def test_a_resource_can_wait_for_a_whole_loop_even_one_that_makes_nothing() -> None:
    many = network("[concat('n', copyIndex())]", copy={"name": "All", "count": 2, "mode": "serial"})
    none = network("[concat('m', copyIndex())]", copy={"name": "none", "count": 0})
    found = plan(network("last", dependsOn=["all", "none"]), many, none)
    assert names(found) == ["n0", "n1", "last"]


def test_a_resource_comes_after_what_it_refers_to() -> None:
    expression = "[reference(resourceId('Microsoft.Network/virtualNetworks', 'FIRST')).x]"
    found = plan(network("second", properties={"x": expression}), network("first"))
    assert names(found) == ["first", "second"]
    answer = found.body(found.resources[1], {})
    assert [(each.id, each.api_version) for each in answer.wanted] == [
        (f"{NETWORK}/virtualNetworks/first", "2022-01-01")
    ]
    read = {f"{NETWORK}/virtualNetworks/first".lower(): {"properties": {"x": 7}}}
    assert body(found, "second", read) == {"properties": {"x": 7}}


def test_a_resource_comes_after_the_owner_of_a_part_that_it_refers_to() -> None:
    part = "[reference(resourceId('Microsoft.Network/virtualNetworks/subnets', 'first', 's')).x]"
    assert names(plan(network("second", properties={"x": part}), network("first"))) == [
        "first",
        "second",
    ]


def test_all_that_is_referred_to_is_asked_for_at_once() -> None:
    properties = {"a": "[reference('one').x]", "b": "[reference('two', '2020-01-01', 'Full').id]"}
    found = plan(network("one"), network("two"), network("user", properties=properties))
    answer = found.body(found.resources[2], {})
    assert [each.api_version for each in answer.wanted] == ["2022-01-01", "2020-01-01"]
    start = f"{NETWORK}/virtualNetworks/".lower()
    read = {f"{start}one": {"properties": {"x": 1}}, f"{start}two": {"id": 2}}
    assert body(found, "user", read) == {"properties": {"a": 1, "b": 2}}


def test_the_order_is_that_of_the_template_where_nothing_else_says() -> None:
    found = plan(network("c", dependsOn=["z"]), network("b"), network("z"), network("a"))
    assert names(found) == ["b", "z", "c", "a"]


@pytest.mark.parametrize(
    "resources",
    [
        (network("a", dependsOn=["b"]), network("b", dependsOn=["a"])),
        (network("a", dependsOn=["a"]),),
        (network("a", dependsOn=["b"]), network("b", properties={"x": "[reference('a').x]"})),
    ],
)
def test_a_circle_is_refused(resources: tuple[Any, ...]) -> None:
    assert "Circular dependency detected on resource" in refusal(*resources)


def test_a_circle_is_named_and_not_what_hangs_on_it() -> None:
    message = refusal(
        network("z", dependsOn=["a"]), network("a", dependsOn=["b"]), network("b", dependsOn=["a"])
    )
    assert "virtualNetworks/z" not in message


def test_a_condition_leaves_a_resource_out_and_nobody_waits_for_it() -> None:
    off = network("off", condition="[equals('a', 'b')]", properties={"x": "[div(1, 0)]"})
    assert names(plan(off, network("on", condition=True, dependsOn=["off"]))) == ["on"]


def test_either_of_two_resources_may_have_the_name() -> None:
    one = network(condition=False, tags={"which": "one"})
    found = plan(
        one, network(condition=True, tags={"which": "two"}), network("x", dependsOn=["net"])
    )
    assert body(found, "net") == {"tags": {"which": "two"}}
    assert names(found) == ["net", "x"]


def test_copies_know_how_far_their_loop_is() -> None:
    found = plan(
        network(
            "[concat('n', copyIndex(1), '-', copyIndex('all'), '-', copyIndex('ALL', 5))]",
            copy={"name": "all", "count": "[length(createArray(1, 2))]"},
            tags={"at": "[string(copyIndex())]"},
        )
    )
    assert names(found) == ["n1-0-5", "n2-1-6"]
    assert body(found, "n2-1-6") == {"tags": {"at": "1"}}


def test_properties_and_variables_can_be_copied() -> None:
    disk = {"lun": "[copyIndex('disks')]", "of": "[copyIndex()]"}
    found = plan(
        network(
            "[concat('n', copyIndex())]",
            copy={"name": "all", "count": 2},
            properties={"copy": [{"name": "disks", "count": 2, "input": disk}], "x": 1},
            tags={"names": "[variables('names')]"},
        ),
        variables={"copy": [{"name": "names", "count": 2, "input": "[copyIndex('names', 1)]"}]},
    )
    assert body(found, "n1") == {
        "properties": {"disks": [{"lun": 0, "of": 1}, {"lun": 1, "of": 1}], "x": 1},
        "tags": {"names": [1, 2]},
    }


def test_a_loop_is_over_behind_its_copies() -> None:
    loop = {"name": "disks", "count": 2, "input": "[copyIndex('disks')]"}
    behind: dict[str, Any] = {"properties": {"copy": [loop]}, "zones": ["[copyIndex('disks')]"]}
    assert "there is no copy loop 'disks' here" in refusal(network(**behind))


@pytest.mark.parametrize(
    ("resource", "words"),
    [
        (network("a/b"), "incorrect segment lengths"),
        (network() | {"type": "Microsoft.Network"}, "incorrect segment lengths"),
        (network() | {"type": "A/providers"}, "'net' is not valid"),
        (network(dependsOn=["nobody"]), "The resource 'nobody' is not defined in the template"),
        (network(scope="/x"), "'net' at 'scope' is not valid: only an extension"),
        (network(condition="yes"), "it must be true or false"),
        (network(dependsOn="x"), "'dependsOn' is not valid: it must be an array of strings"),
        ({"type": "A/b", "name": "c"}, "'c' at 'apiVersion'"),
        ({"type": "A/b", "apiVersion": "2020-01-01"}, "at 'name'"),
        (network("[reference('x').y]"), "The template function 'reference' is not valid here"),
        (network(properties={"a": [{"b": "[nope()]"}]}), "'net' at 'properties.a.0.b'"),
        ("text", "must be an object"),
    ],
)
def test_a_resource_that_makes_no_sense_is_refused(resource: Any, words: str) -> None:
    assert words in refusal(resource)


def test_the_same_resource_twice_is_refused() -> None:
    assert "is defined multiple times" in refusal(network(), network("NET"))


def nested(scope: str) -> dict[str, Any]:
    template = {
        "variables": {"a": "inner"},
        "resources": [network("[variables('a')]", tags={"x": "[[literal]"})],
    }
    options = {"expressionEvaluationOptions": {"scope": scope}}
    properties = {"mode": "Incremental", "template": template, **options}
    return {
        "type": "Microsoft.Resources/deployments",
        "name": "below",
        "apiVersion": "2024-11-01",
        "properties": properties,
    }


def test_the_expressions_of_an_inner_template_are_its_own() -> None:
    found = plan(nested("inner"), variables={"a": "outer"})
    made = body(found, "below")["properties"]["template"]["resources"][0]
    assert (made["name"], made["tags"]["x"]) == ("[variables('a')]", "[[literal]")


def test_the_expressions_of_an_outer_template_are_those_of_the_one_around_it() -> None:
    found = plan(nested("outer"), variables={"a": "outer"})
    made = body(found, "below")["properties"]["template"]["resources"][0]
    assert made["name"] == "outer"
    assert made["tags"]["x"] == "[[literal]", "it is evaluated once more and must not change"
