"""What a deployment answers."""

from typing import Any

import pytest

from fairwarning.azure_api.templates.plan import camel_case
from tests.azure_api.templates.plans import NETWORK, network, plan, refusal


@pytest.mark.parametrize(
    ("name", "answered"),
    [
        ("VMSS", "vmss"),
        ("VMName", "vmName"),
        ("Name", "name"),
        ("hostName", "hostName"),
        ("publicIP", "publicIP"),
        ("A", "a"),
        ("IP1", "iP1"),
        ("_X", "_X"),
        ("", ""),
    ],
)
def test_names_are_answered_as_arm_spells_them(name: str, answered: str) -> None:
    assert camel_case(name) == answered


def output(value: Any, kind: str = "string", **more: Any) -> dict[str, Any]:
    return {"type": kind, "value": value, **more}


def test_the_output_of_az_is_the_properties_of_what_was_made() -> None:
    expression = (
        "[reference(resourceId('Microsoft.Network/virtualNetworks', 'net'),"
        "providers('Microsoft.Network', 'virtualNetworks').apiVersions[0])]"
    )
    found = plan(network(), outputs={"VMSS": output(expression, "object")})
    wanted = found.outputs({}).wanted
    assert [(each.id, each.api_version) for each in wanted] == [
        (f"{NETWORK}/virtualNetworks/net", "2024-05-01")
    ]
    read = {wanted[0].id.lower(): {"properties": {"state": "fine"}}}
    assert found.outputs(read).value == {"vmss": {"type": "Object", "value": {"state": "fine"}}}


def test_outputs_with_a_secret_in_them_have_no_value() -> None:
    found = plan(
        parameters={"key": {"type": "securestring"}},
        variables={"hidden": {"deep": "[concat('x', parameters('key'))]"}, "open": "fine"},
        outputs={
            "told": output("[variables('open')]"),
            "direct": output("[parameters('key')]"),
            "indirect": output("[variables('hidden').deep]"),
            "declared": output("fine", "secureString"),
            "after": output("[variables('open')]"),
        },
        given={"key": {"value": "hunter2"}},
    )
    assert found.outputs({}).value == {
        "told": {"type": "String", "value": "fine"},
        "direct": {"type": "String"},
        "indirect": {"type": "String"},
        "declared": {"type": "SecureString"},
        "after": {"type": "String", "value": "fine"},
    }


def test_an_output_may_have_a_condition_or_a_loop() -> None:
    found = plan(
        outputs={
            "off": output("[div(1, 0)]", condition="[false()]"),
            "all": {"type": "array", "copy": {"count": 2, "input": "[copyIndex('all')]"}},
        }
    )
    assert found.outputs({}).value == {"all": {"type": "Array", "value": [0, 1]}}


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ({"a": output(1)}, "Expected 'String, Uri'. Actual 'Integer'"),
        ({"a": {"type": "string"}}, "it needs a value"),
        ({"a": {"value": 1}}, "it needs a value, and a type"),
        ({f"a{n}": output("x") for n in range(65)}, "at most 64 outputs"),
    ],
)
def test_outputs_that_make_no_sense_are_refused(outputs: Any, words: str) -> None:
    assert words in refusal(outputs=outputs)
