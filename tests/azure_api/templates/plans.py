"""Plans of small templates, as they would be made in the resource group `web`."""

from typing import Any

import pytest

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.templates.plan import Plan
from fairwarning.azure_api.templates.scope_functions import DeploymentContext

SUBSCRIPTION = "11111111-1111-1111-1111-111111111111"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/web"
NETWORK = f"{GROUP}/providers/Microsoft.Network"
PLACE = DeploymentContext(
    subscription={"id": f"/subscriptions/{SUBSCRIPTION}", "subscriptionId": SUBSCRIPTION},
    group={"id": GROUP, "name": "web", "location": "west", "tags": {}},
    deployment={"name": "first", "properties": {"mode": "Incremental"}},
)


def plan(*resources: Any, given: Any = None, **members: Any) -> Plan:
    """`members` are those of the template, which has `resources` unless they say so."""
    return Plan({"resources": list(resources), **members}, given, PLACE)


def refusal(*resources: Any, **members: Any) -> str:
    with pytest.raises(ArmError) as found:
        plan(*resources, **members)
    assert found.value.status == 400
    assert found.value.failure.code == "InvalidTemplate"
    return found.value.failure.message


def value(expression: object, **members: Any) -> Any:
    """What an expression stands for, seen as an output."""
    wrapped = {"type": "object", "value": {"it": expression}}
    answer = plan(outputs={"it": wrapped}, **members).outputs({})
    assert not answer.wanted
    return answer.value["it"]["value"]["it"]


def network(name: str = "net", **more: Any) -> dict[str, Any]:
    return {
        "type": "Microsoft.Network/virtualNetworks",
        "apiVersion": "2022-01-01",
        "name": name,
        **more,
    }


def names(found: Plan) -> list[str]:
    return [each.name for each in found.resources]


def body(found: Plan, name: str, read: Any = None) -> Any:
    resource = next(each for each in found.resources if each.name == name)
    answer = found.body(resource, read or {})
    assert not answer.wanted
    return answer.value
