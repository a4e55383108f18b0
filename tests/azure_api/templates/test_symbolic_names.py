"""Templates of languageVersion 2.0, whose resources have symbolic names, as Bicep writes them."""

from typing import Any

from tests.azure_api.templates.plans import NETWORK, body, names, network, plan, refusal

V2 = {"languageVersion": "2.0"}


def output(value: object, kind: str = "string") -> dict[str, Any]:
    return {"it": {"type": kind, "value": value}}


def test_resources_are_created_after_the_symbols_that_they_depend_on() -> None:
    found = plan(
        resources={
            "second": network("b", dependsOn=["first"]),
            "first": network("a"),
            "third": network("c", tags={"x": "[reference('Second').y]"}),
        },
        **V2,
    )
    assert names(found) == ["a", "b", "c"]
    read = {f"{NETWORK}/virtualNetworks/b".lower(): {"properties": {"y": "z"}}}
    assert body(found, "c", read)["tags"] == {"x": "z"}


def test_a_symbol_wins_over_a_name() -> None:
    found = plan(
        resources={"b": network("a"), "x": network("b"), "y": network("c", dependsOn=["b"])},
        **V2,
    )
    assert [each.rpartition("/")[2] for each in found.needs[f"{NETWORK}/virtualNetworks/c"]] == [
        "a"
    ]


def test_the_facts_of_a_symbol_are_known_before_it_is_created() -> None:
    found = plan(resources={"net": network()}, outputs=output("[resourceInfo('net').id]"), **V2)
    assert found.outputs({}).value["it"]["value"] == f"{NETWORK}/virtualNetworks/net"


def test_an_existing_resource_is_read_and_not_created() -> None:
    found = plan(
        resources={
            "old": network("old", existing=True),
            "new": network("new", tags={"x": "[reference('old').y]"}),
        },
        **V2,
    )
    assert names(found) == ["new"]
    (wanted,) = found.body(found.resources[0], {}).wanted
    assert wanted.id == f"{NETWORK}/virtualNetworks/old"


def test_a_loop_is_referred_to_as_a_whole_and_by_number() -> None:
    loop = network("[format('n{0}', copyIndex())]", copy={"name": "nets", "count": 2})
    after = network(
        "z",
        dependsOn=["nets"],
        tags={"one": "[reference('nets[1]').y]", "all": "[references('nets')]"},
    )
    found = plan(resources={"last": after, "nets": loop}, **V2)
    assert names(found) == ["n0", "n1", "z"]
    read = {f"{NETWORK}/virtualNetworks/n{n}".lower(): {"properties": {"y": n}} for n in range(2)}
    assert body(found, "z", read)["tags"] == {"one": 1, "all": [{"y": 0}, {"y": 1}]}


def test_a_loop_of_none_is_known_by_its_symbol() -> None:
    loop = network("n", copy={"name": "nets", "count": 0})
    found = plan(resources={"nets": loop, "z": network("z", dependsOn=["nets"])}, **V2)
    assert names(found) == ["z"]


def test_an_extension_resource_belongs_to_its_scope() -> None:
    lock = {
        "type": "Microsoft.Authorization/locks",
        "apiVersion": "2020-05-01",
        "name": "keep",
        "scope": "[format('Microsoft.Network/virtualNetworks/{0}', 'net')]",
        "properties": {"level": "CanNotDelete"},
    }
    whole = {**lock, "name": "also", "scope": "[resourceInfo('net').id]"}
    found = plan(resources={"net": network(), "k": lock}, **V2)
    assert [each.id for each in found.resources] == [
        f"{NETWORK}/virtualNetworks/net",
        f"{NETWORK}/virtualNetworks/net/providers/Microsoft.Authorization/locks/keep",
    ]
    absolute = {**whole, "scope": f"{NETWORK}/virtualNetworks/net"}
    assert (
        plan(network(), absolute)
        .resources[1]
        .id.endswith("net/providers/Microsoft.Authorization/locks/also")
    )


def test_a_nullable_parameter_may_be_left_out() -> None:
    found = plan(
        resources={},
        parameters={"x": {"type": "string", "nullable": True}},
        outputs=output("[coalesce(parameters('x'), 'none')]"),
        **V2,
    )
    assert found.outputs({}).value["it"]["value"] == "none"


def test_what_makes_no_sense_is_refused() -> None:
    assert "languageVersion 2.0" in refusal(resources={"net": network()})
    assert "is not defined" in refusal(resources={"a": network("a", dependsOn=["none"])}, **V2)
    assert "no resource 'none'" in refusal(outputs=output("[resourceInfo('none').id]"), **V2)
    assert "must be an object" in refusal(resources={"a": 7}, **V2)
    circle = {"a": network("a", dependsOn=["b"]), "b": network("b", dependsOn=["a"])}
    assert "Circular dependency" in refusal(resources=circle, **V2)


def test_a_type_that_the_template_defines_stands_for_its_definition() -> None:
    kinds = {
        "size": {"type": "int", "maxValue": 5},
        "small": {"$ref": "#/definitions/size", "maxValue": 2},
    }
    members: dict[str, Any] = {
        "definitions": kinds,
        "parameters": {"n": {"$ref": "#/definitions/small"}},
        "outputs": {"it": {"$ref": "#/definitions/size", "value": "[parameters('n')]"}},
        "resources": {},
        **V2,
    }
    found = plan(given={"n": {"value": 2}}, **members)
    assert found.outputs({}).value["it"] == {"type": "Int", "value": 2}
    assert "at most '2'" in refusal(given={"n": {"value": 3}}, **members)
    members["definitions"] = {"small": {"$ref": "#/definitions/small"}}
    assert "is not defined" in refusal(given={"n": {"value": 1}}, **members)
    members["definitions"] = {}
    assert "is not defined" in refusal(given={"n": {"value": 1}}, **members)
