"""Hostile templates: a value or an ArmError, always, and soon."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.templates.functions import PURE_FUNCTIONS
from tests.azure_api.templates.plans import names, network, plan, refusal

WORDS = st.sampled_from(
    [*PURE_FUNCTIONS, "if", "and", "or", "coalesce", "parameters", "variables", "reference",
     "copyIndex", "resourceId", "providers", "resourceGroup", "(", ")", "[", "]", ",", ".", "'",
     "''", "'a'", "1", "-1", " ", "x", "{0}", "/", "9223372036854775807"]
)  # fmt: skip
SCALARS = st.one_of(
    st.integers(-(10**6), 10**6).map(str), st.sampled_from(["'a'", "'a/b'", "''", "'{0:D2}'"])
)
CALLS = st.recursive(
    SCALARS,
    lambda below: st.builds(
        lambda name, arguments: f"{name}({','.join(arguments)})",
        st.sampled_from(
            [*PURE_FUNCTIONS, "if", "and", "or", "coalesce", "resourceId", "variables"]
        ),
        st.lists(below, max_size=4),
    ),
    max_leaves=12,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | CALLS.map("[{}]".format),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=8), below),
    max_leaves=10,
)


def settle(*resources: Any, **members: Any) -> None:
    """A value or an ArmError, and nothing else."""
    try:
        plan(*resources, **members)
    except ArmError as error:
        code = error.failure.code
    else:
        code = "InvalidTemplate"
    assert code == "InvalidTemplate"


def settle_expression(found: Any) -> None:
    settle(outputs={"it": {"type": "object", "value": {"it": found}}}, variables={"a": found})


@given(st.text(max_size=60).map("[{}]".format) | st.lists(WORDS, max_size=20).map("".join))
def test_any_text_is_a_value_or_an_arm_error(text: str) -> None:
    settle_expression(f"[{text}]")


@given(CALLS)
def test_any_call_is_a_value_or_an_arm_error(call: str) -> None:
    settle_expression(f"[{call}]")


@given(st.dictionaries(st.sampled_from(
    ["parameters", "variables", "resources", "outputs", "copy", "functions"]
), VALUES), VALUES)  # fmt: skip
def test_any_template_is_a_plan_or_an_arm_error(template: Any, given: Any) -> None:
    settle(given=given, **{"resources": [], **template})


@given(st.dictionaries(st.sampled_from(
    ["name", "type", "apiVersion", "condition", "copy", "dependsOn", "resources", "scope",
     "properties", "resourceGroup"]
), VALUES))  # fmt: skip
def test_any_resource_is_planned_or_an_arm_error(members: Any) -> None:
    settle(network() | members, network("other"))


DOUBLED = {"v0": "aaaaaaaaaaaaaaaa"} | {
    f"v{n}": f"[concat(variables('v{n - 1}'), variables('v{n - 1}'))]" for n in range(1, 60)
}
FOLDED = {"v0": ["a"]} | {
    f"v{n}": f"[createArray(variables('v{n - 1}'), variables('v{n - 1}'))]" for n in range(1, 60)
}
MERGED = {"v0": {"a": 1}} | {
    f"v{n}": f"[createObject('x', variables('v{n - 1}'), 'y', union(variables('v{n - 1}'), "
    f"variables('v{n - 1}')))]"
    for n in range(1, 60)
}
DEEP_CHAIN = {"v500": "a"} | {
    f"v{n}": "[" + "if(true()," * 30 + f"variables('v{n + 1}')" + ",1)" * 30 + "]"
    for n in range(500)
}
WIDE_CHAIN = {"v500": "a"} | {
    f"v{n}": {"a": [{"b": f"[createArray(variables('v{n + 1}'))]"}]} for n in range(500)
}
HOSTILE = {
    "doubled text": DOUBLED,
    "doubled arrays": FOLDED,
    "doubled objects": MERGED,
    "a long way through calls": DEEP_CHAIN,
    "a long way through values": WIDE_CHAIN,
    "a circle": {"a": "[variables('b')]", "b": "[variables('a')]"},
    "nested calls": {"a": "[" + "concat(" * 5_000 + ")" * 5_000 + "]"},
    "nested arrays in JSON": {"a": f"[json('{'[' * 9_000}{']' * 9_000}')]"},
    "a long expression": {"a": "[concat(" + "'a'," * 9_000 + "'a')]"},
    "formats": {"a": f"[format('{'{0}' * 6_000}', padLeft('a', 1000000))]"},
    "replacements": {"a": "[replace(padLeft('a', 1000000), ' ', padLeft('a', 1000000))]"},
    "a long split": {"a": "[split(padLeft('a', 1000000), ' ')]"}
    | {f"a{n}": "[split(padLeft('a', 1000000), ' ')]" for n in range(50)},
    "loops in loops": {
        "a": {"copy": [{"name": "x", "count": 800, "input": {
            "copy": [{"name": "y", "count": 800, "input": {
                "copy": [{"name": "z", "count": 800, "input": 1}]}}]}}]},
    },
    "a wide union": {
        "a": "[union(" + "createObject('a', range(0, 10000))," * 600 + "createObject('b', 1))]"
    },
}  # fmt: skip


@pytest.mark.parametrize("variables", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_template_takes_more_than_bounded_work(variables: Any) -> None:
    """Otherwise this does not end, or not with a refusal."""
    refusal(variables=variables)


def test_many_copies_of_a_large_resource_are_too_much_work() -> None:
    many = {"copy": {"name": "all", "count": 800}, "name": "[concat('n', copyIndex())]"}
    message = refusal(network() | many | {"properties": {"x": [[0] * 1000] * 100}})
    assert "too much work" in message


def test_variables_in_order_may_depend_on_each_other_however_many_there_are() -> None:
    plan(variables={"v0": "a"} | {f"v{n}": f"[variables('v{n - 1}')]" for n in range(1, 512)})


def chain(link: str, count: int = 512) -> dict[str, Any]:
    """Each variable needs the next one, and the first is looked at first."""
    return {f"v{n}": link.replace("NEXT", f"variables('v{n + 1}')") for n in range(count - 1)} | {
        f"v{count - 1}": True
    }


LINKS = (
    "[NEXT]", "[and(true(), NEXT)]", "[" + "or(false()," * 12 + "NEXT" + ")" * 12 + "]",
    "[createArray(NEXT)[0]]", "[coalesce(null(), NEXT)]", "[if(NEXT, true(), false())]",
)  # fmt: skip


@pytest.mark.parametrize("link", LINKS)
def test_a_long_way_through_variables_never_exhausts_the_stack(link: str) -> None:
    def below(depth: int) -> str:
        return below(depth - 1) if depth else refusal(variables=chain(link))

    assert "levels deep" in below(200)


def test_a_way_of_20_variables_is_not_too_long() -> None:
    plan(variables=chain("[and(true(), NEXT)]", 20))


def test_800_resources_are_the_most() -> None:
    def loop(count: int) -> Any:
        return {"copy": {"name": "all", "count": count}, "name": "[concat('n', copyIndex())]"}

    assert len(plan(network() | loop(800)).resources) == 800
    assert "at most 800 resources" in refusal(network() | loop(800), network("one more"))
    assert "between 0 and 800" in refusal(network() | loop(801))
    assert "between 0 and 800" in refusal(network() | loop(-1))


def test_a_loop_that_waits_for_a_loop_comes_after_it() -> None:
    many = {"name": "[concat('a', copyIndex())]", "copy": {"name": "as", "count": 400}}
    more = {"name": "[concat('b', copyIndex())]", "copy": {"name": "bs", "count": 400}}
    found = plan(network() | more | {"dependsOn": ["as"]}, network() | many)
    assert names(found) == [f"a{n}" for n in range(400)] + [f"b{n}" for n in range(400)]
