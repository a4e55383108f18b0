"""Deployments of templates, on a whole node."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from fairwarning.azure_api.deployments.template_runner import TemplateRunner
from fairwarning.azure_api.templates.template_job import Evaluated
from fairwarning.core.resources import DEFAULT_SUBSCRIPTION
from fairwarning.operator_api.problems import Problem
from tests.azure_api.arm_client import COMPUTE, GROUP, NETWORK, ArmClient, running_client

DEPLOYMENTS = f"{GROUP}/providers/Microsoft.Resources/deployments"
RESOURCES = "providers/Microsoft.Resources"
OLD_DEPLOYMENTS = f"/subscriptions/{DEFAULT_SUBSCRIPTION}/resourcegroups/DEFAULT/deployments"


class DeploymentClient(ArmClient):
    async def start(self, name: str, *resources: Any, status: int = 201, **more: Any) -> Any:
        """What a client that waits is told."""
        answer = await self.ask(
            "PUT", f"{DEPLOYMENTS}/{name}", template(*resources, **more), status
        )
        assert int(answer.headers["Retry-After"]) >= 1
        assert answer.json()["properties"]["provisioningState"] == "Accepted"
        return answer.headers["Azure-AsyncOperation"]

    async def deploy(self, name: str, *resources: Any, **more: Any) -> Any:
        """The deployment that went well."""
        found = await self.progress(await self.start(name, *resources, **more))
        assert found["status"] == "Succeeded", found
        return (await self.get(f"{DEPLOYMENTS}/{name}"))["properties"]

    async def fail(self, name: str, *resources: Any, **more: Any) -> Any:
        """What az prints of it."""
        found = await self.progress(await self.start(name, *resources, **more))
        assert (found["status"], found["error"]["code"]) == ("Failed", "DeploymentFailed")
        shown = (await self.get(f"{DEPLOYMENTS}/{name}"))["properties"]
        assert (shown["provisioningState"], shown["error"]) == ("Failed", found["error"])
        return found["error"]["details"][0]


def template(*resources: Any, given: Any = None, mode: str = "incremental", **members: Any) -> Any:
    found = {"contentVersion": "1.0.0.0", "resources": list(resources), **members}
    return {"properties": {"mode": mode, "parameters": given or {}, "template": found}}


def resource(kind: str, name: str, **more: Any) -> dict[str, Any]:
    start = {"type": kind, "name": name, "apiVersion": "2022-01-01", "location": "local"}
    return {**start, "properties": {}, **more}


def network(name: str = "net", **more: Any) -> dict[str, Any]:
    properties = {
        "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
        "subnets": [{"name": "front", "properties": {"addressPrefix": "10.0.0.0/24"}}],
    }
    return resource("Microsoft.Network/virtualNetworks", name, properties=properties, **more)


def balancer(name: str = "lb", **more: Any) -> dict[str, Any]:
    return resource("Microsoft.Network/loadBalancers", name, **more)


def scale_set(name: str = "s", capacity: Any = 2, **profile: Any) -> dict[str, Any]:
    subnet = "[resourceId('Microsoft.Network/virtualNetworks/subnets', 'net', 'front')]"
    address = {"name": "ip", "properties": {"subnet": {"id": subnet}}}
    card = {"name": "nic", "properties": {"primary": "true", "ipConfigurations": [address]}}
    notice = {"notBeforeTimeout": "PT5M", "enable": "true"}
    properties = {
        "orchestrationMode": "Uniform",
        "upgradePolicy": {"mode": "manual"},
        "virtualMachineProfile": {
            "scheduledEventsProfile": {"terminateNotificationProfile": notice},
            "osProfile": {"computerNamePrefix": "vm", "adminUsername": "me"},
            "networkProfile": {"networkInterfaceConfigurations": [card]},
            **profile,
        },
    }
    return resource(
        "Microsoft.Compute/virtualMachineScaleSets",
        name,
        apiVersion="2024-11-01",
        sku={"name": "Standard_D2s_v5", "capacity": capacity},
        properties=properties,
        dependsOn=["Microsoft.network/virtualnetworks/net"],
    )


OF_AZ = {
    "VMSS": {
        "type": "object",
        "value": "[reference(resourceId('Microsoft.Compute/virtualMachineScaleSets', 's'),"
        "providers('Microsoft.Compute', 'virtualMachineScaleSets').apiVersions[0])]",
    }
}


@pytest_asyncio.fixture
async def arm() -> AsyncIterator[DeploymentClient]:
    async with running_client(DeploymentClient) as client:
        yield client


async def test_a_scale_set_is_made_as_az_makes_it(arm: DeploymentClient) -> None:
    rule = resource("Microsoft.Network/loadBalancers/inboundNatRules", "lb/rule")
    rule["dependsOn"] = ["[concat('Microsoft.Network/loadBalancers/', 'lb')]"]
    pool = "[concat(resourceId('Microsoft.Network/loadBalancers', 'lb'), '/backendAddressPools/b')]"
    outbound = {"name": "out", "properties": {"backendAddressPool": {"id": pool}}}
    lb = balancer(properties={"outboundRules": [outbound]})
    found = await arm.deploy("first", scale_set(), rule, lb, network(), outputs=OF_AZ)
    assert found["provisioningState"] == "Succeeded"
    assert found["mode"] == "Incremental"
    assert [each["id"].split("/providers/")[1] for each in found["outputResources"]] == [
        "Microsoft.Network/loadBalancers/lb",
        "Microsoft.Network/loadBalancers/lb/inboundNatRules/rule",
        "Microsoft.Network/virtualNetworks/net",
        "Microsoft.Compute/virtualMachineScaleSets/s",
    ]
    assert found["outputs"]["vmss"]["type"] == "Object"
    assert found["outputs"]["vmss"]["value"]["orchestrationMode"] == "Uniform"
    assert found["outputs"]["vmss"]["value"]["provisioningState"] == "Succeeded"
    assert len(found["dependencies"]) == 2
    list_reply = await arm.get(f"{COMPUTE}/virtualMachineScaleSets/s/virtualMachines")
    assert len(list_reply["value"]) == 2
    kept = await arm.get(f"{NETWORK}/loadBalancers/lb")
    (kept_rule,) = kept["properties"]["outboundRules"]
    assert kept_rule["properties"]["backendAddressPool"] == {
        "id": f"{NETWORK}/loadBalancers/lb/backendAddressPools/b"
    }


async def test_the_deployment_runs_until_the_events_of_its_resources_are_over(
    arm: DeploymentClient,
) -> None:
    await arm.deploy("first", network(), scale_set(capacity=2))
    await arm.rig.activate("s_0", "s_1")
    url = await arm.start("second", network(), scale_set(capacity=1), outputs=OF_AZ)
    assert (await arm.progress(url))["status"] == "Running"
    shown = await arm.get(f"{DEPLOYMENTS}/second")
    assert shown["properties"]["provisioningState"] == "Running"
    steps = (await arm.get(f"{DEPLOYMENTS}/second/operations"))["value"]
    assert [each["properties"]["provisioningState"] for each in steps] == ["Succeeded", "Running"]
    refused = await arm.ask("PUT", f"{DEPLOYMENTS}/second", template(network()), 409)
    assert refused.json()["error"]["code"] == "DeploymentActive"
    assert (await arm.ask("DELETE", f"{DEPLOYMENTS}/second", None, 409)).status_code == 409
    await arm.rig.post("/clock/advance", {"by": "6m"})
    assert (await arm.progress(url))["status"] == "Succeeded"
    shown = await arm.get(f"{DEPLOYMENTS}/second")
    assert shown["properties"]["provisioningState"] == "Succeeded"
    assert len((await arm.get(f"{DEPLOYMENTS}/second/operations"))["value"]) == 2
    await arm.deploy("second", network(), status=200)


async def test_the_first_failure_stops_it_and_what_was_made_stays(arm: DeploymentClient) -> None:
    detail = await arm.fail(
        "broken",
        network(),
        resource("Microsoft.Nobody/things", "x", dependsOn=["net"]),
        balancer(dependsOn=["x"]),
    )
    assert detail["code"] == "InvalidResourceNamespace"
    assert detail["target"] == f"{GROUP}/providers/Microsoft.Nobody/things/x"
    await arm.get(f"{NETWORK}/virtualNetworks/net")
    await arm.get(f"{NETWORK}/loadBalancers/lb", 404)
    shown = (await arm.get(f"{DEPLOYMENTS}/broken"))["properties"]
    assert shown["outputResources"] == [{"id": f"{NETWORK}/virtualNetworks/net"}]
    steps = (await arm.get(f"{OLD_DEPLOYMENTS}/broken/operations"))["value"]
    states = [each["properties"]["provisioningState"] for each in steps]
    assert states == ["Succeeded", "Failed"]
    error = steps[1]["properties"]["statusMessage"]["error"]
    assert error["code"] == "InvalidResourceNamespace"
    one = await arm.get(f"{DEPLOYMENTS}/broken/operations/{steps[1]['operationId']}")
    assert one == steps[1]
    await arm.get(f"{DEPLOYMENTS}/broken/operations/77", 404)


@pytest.mark.parametrize(
    ("members", "code", "words"),
    [
        ({"variables": {"a": "[frob('x')]"}}, "InvalidTemplate", "'frob' is not valid"),
        ({"given": {"x": {"value": 1}}}, "InvalidTemplate", "parameters 'x'"),
        ({"parameters": {"x": {"type": "int"}}}, "InvalidTemplate", "'x' is not provided"),
        ({"mode": "Total"}, "InvalidDeploymentMode", "Use the mode 'Incremental' or 'Complete'"),
        ({"resources": 7}, "InvalidTemplate", "must be an array"),
    ],
)
async def test_a_template_that_is_not_valid_makes_nothing_and_is_told_to_who_waits(
    arm: DeploymentClient, members: Any, code: str, words: str
) -> None:
    detail = await arm.fail("broken", network(), **members)
    assert detail["code"] == code
    assert words in detail["message"]
    await arm.get(f"{NETWORK}/virtualNetworks/net", 404)
    refused = await arm.ask(
        "POST", f"{DEPLOYMENTS}/broken/validate", template(network(), **members), 400
    )
    assert refused.json()["error"]["code"] == code
    assert words in refused.json()["error"]["message"]


async def test_a_template_can_be_validated_without_making_anything(arm: DeploymentClient) -> None:
    answer = await arm.ask("POST", f"{DEPLOYMENTS}/x/validate", template(network()))
    assert answer.json()["properties"]["validatedResources"] == [
        {"id": f"{NETWORK}/virtualNetworks/net"}
    ]
    await arm.get(f"{NETWORK}/virtualNetworks/net", 404)
    await arm.get(f"{DEPLOYMENTS}/x", 404)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{DEPLOYMENTS}/x", None),
        (f"{DEPLOYMENTS}/x", {}),
        (f"{DEPLOYMENTS}/x", {"properties": []}),
        (f"{DEPLOYMENTS}/x", {"properties": {"mode": "incremental"}}),
        (f"{DEPLOYMENTS}/{'x' * 65}", template()),
        (
            f"/subscriptions/{DEFAULT_SUBSCRIPTION}/providers/Microsoft.Resources/deployments/x",
            template(),
        ),
    ],
)
async def test_what_is_no_deployment_at_all_is_refused_at_once(
    arm: DeploymentClient, path: str, body: Any
) -> None:
    assert (await arm.ask("PUT", path, body, 400)).json()["error"]["message"]


async def test_a_link_to_a_template_is_refused_clearly(arm: DeploymentClient) -> None:
    body = {"properties": {"templateLink": {"uri": "https://localhost/x.json"}}}
    answer = await arm.ask("PUT", f"{DEPLOYMENTS}/x", body, 201)
    found = await arm.progress(answer.headers["Azure-AsyncOperation"])
    assert "send the content itself" in found["error"]["details"][0]["message"]


async def test_secrets_are_neither_shown_nor_kept(arm: DeploymentClient) -> None:
    found = await arm.deploy(
        "secret",
        balancer(tags={"length": "[string(length(parameters('key')))]"}),
        parameters={"key": {"type": "securestring"}},
        given={"key": {"value": "hunter2-secret"}},
        outputs={"key": {"type": "string", "value": "[parameters('key')]"}},
    )
    assert found["parameters"] == {"key": {"type": "SecureString"}}
    assert found["outputs"] == {"key": {"type": "String"}}
    assert (await arm.get(f"{NETWORK}/loadBalancers/lb"))["tags"] == {"length": "14"}
    for kind in ("arm", "arm-operation"):
        for record in await arm.rig.node.store.records(kind, limit=100):
            assert "hunter2" not in record.body


async def test_resources_refer_to_each_other_as_they_are(arm: DeploymentClient) -> None:
    prefix = "[reference('net').addressSpace.addressPrefixes[0]]"
    found = await arm.deploy(
        "linked",
        balancer(tags={"prefix": prefix, "tier": "[reference('net', '2022-01-01', 'full').name]"}),
        network(),
        outputs={"All": {"type": "string", "value": "[reference('lb', '', 'full').tags.prefix]"}},
    )
    assert found["outputs"]["all"]["value"] == "10.0.0.0/16"
    assert (await arm.get(f"{NETWORK}/loadBalancers/lb"))["tags"]["tier"] == "net"


async def test_a_resource_that_changed_meanwhile_is_referred_to_as_it_is_now(
    arm: DeploymentClient,
) -> None:
    count = "[string(length(reference('net').subnets))]"
    extra = {
        "type": "Microsoft.Network/virtualNetworks/subnets",
        "name": "net/extra",
        "apiVersion": "2022-01-01",
        "properties": {"addressPrefix": "10.0.1.0/24"},
        "dependsOn": ["before"],
    }
    await arm.deploy(
        "linked",
        network(),
        balancer("before", tags={"subnets": count}),
        extra,
        balancer("after", tags={"subnets": count}, dependsOn=["net/extra"]),
    )
    assert (await arm.get(f"{NETWORK}/loadBalancers/before"))["tags"] == {"subnets": "1"}
    assert (await arm.get(f"{NETWORK}/loadBalancers/after"))["tags"] == {"subnets": "2"}


async def test_what_is_referred_to_must_exist(arm: DeploymentClient) -> None:
    gone = "[reference(resourceId('Microsoft.Network/virtualNetworks', 'gone')).x]"
    detail = await arm.fail("broken", balancer(properties={"x": gone}))
    assert detail["code"] == "ResourceNotFound"
    wrong = await arm.fail("wrong", network(), balancer(properties={"x": "[reference('net').no]"}))
    assert wrong["code"] == "InvalidTemplate"
    assert "'lb' at 'properties.x'" in wrong["message"]


async def test_each_resource_has_its_own_version(arm: DeploymentClient) -> None:
    old = {**scale_set(), "apiVersion": "2018-10-01"}
    detail = await arm.fail("old", network(), old)
    assert "Could not find member 'scheduledEventsProfile'" in detail["message"]
    detail = await arm.fail("bad", network(apiVersion="yesterday"))
    assert detail["code"] == "InvalidApiVersionParameter"


def nested(name: str, *resources: Any, **more: Any) -> dict[str, Any]:
    properties = template(*resources)["properties"]
    properties["expressionEvaluationOptions"] = {"scope": "inner"}
    properties["template"] |= more
    kind = "Microsoft.Resources/deployments"
    return {"type": kind, "name": name, "apiVersion": "2024-11-01", "properties": properties}


async def test_a_deployment_within_a_deployment_tells_its_outputs(arm: DeploymentClient) -> None:
    inner = {"x": {"type": "string", "value": "[concat('in', 'ner')]"}}
    found = await arm.deploy(
        "outer",
        nested("below", network(), outputs=inner),
        outputs={"X": {"type": "string", "value": "[reference('below').outputs.x.value]"}},
    )
    assert found["outputs"]["x"]["value"] == "inner"
    assert (await arm.get(f"{DEPLOYMENTS}/below"))["properties"]["outputResources"]
    list_reply = await arm.get(DEPLOYMENTS)
    assert {each["name"] for each in list_reply["value"]} == {"outer", "below"}


async def test_deployments_cannot_multiply(arm: DeploymentClient) -> None:
    loop = {"name": "all", "count": 40}
    many = balancer("[concat('lb', copyIndex())]", copy=loop)
    inner = nested("[concat('d', copyIndex())]", many)
    detail = await arm.fail("many", {**inner, "copy": loop})
    assert "at most 800 resources" in str(detail)
    deep = network()
    for level in range(8):
        deep = nested(f"level{level}", deep)
    assert "nested more than 5 levels deep" in str(await arm.fail("deep", deep))


async def test_a_nested_failure_is_that_of_the_deployment(arm: DeploymentClient) -> None:
    detail = await arm.fail("outer", nested("below", resource("Microsoft.Nobody/things", "x")))
    assert "Microsoft.Nobody" in str(detail)


async def test_no_deployment_begins_in_a_group_that_is_being_deleted(
    arm: DeploymentClient,
) -> None:
    await arm.put_group("other")
    await arm.rig.activate("workers_0")
    await arm.ask("DELETE", GROUP, None, 202)
    other = f"/subscriptions/{DEFAULT_SUBSCRIPTION}/resourceGroups/other/{RESOURCES}/deployments"
    into = {**nested("below"), "resourceGroup": "default"}
    answer = await arm.ask("PUT", f"{other}/outer", template(into), 201)
    found = await arm.progress(answer.headers["Azure-AsyncOperation"])
    assert found["error"]["details"][0]["code"] == "ResourceGroupBeingDeleted"
    await arm.get(f"{DEPLOYMENTS}/below", 404)


async def test_a_server_too_busy_to_go_on_is_asked_again_only_if_nothing_was_made(
    arm: DeploymentClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def outputs(*_: object) -> Evaluated:
        raise Problem(503, "too-many-large-bodies", "try again in a moment")

    monkeypatch.setattr(TemplateRunner, "outputs", outputs)
    await arm.ask("PUT", f"{DEPLOYMENTS}/nothing", template(), 503)
    await arm.get(f"{DEPLOYMENTS}/nothing", 404)
    detail = await arm.fail("half", network())
    assert "try again in a moment" in detail["message"]
    shown = (await arm.get(f"{DEPLOYMENTS}/half"))["properties"]
    assert shown["outputResources"] == [{"id": f"{NETWORK}/virtualNetworks/net"}]


@pytest.mark.parametrize("status", [429, 503])
async def test_a_server_too_busy_for_the_first_resource_leaves_nothing(
    arm: DeploymentClient, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    async def body(*_: object) -> Evaluated:
        raise Problem(status, "too-many-large-bodies", "try again", headers={"Retry-After": "5"})

    with monkeypatch.context() as busy:
        busy.setattr(TemplateRunner, "body", body)
        for name, first in (("flat", network()), ("outer", nested("inner", network()))):
            answer = await arm.ask("PUT", f"{DEPLOYMENTS}/{name}", template(first), status)
            assert answer.headers["Retry-After"] == "5"
    assert (await arm.get(DEPLOYMENTS))["value"] == []
    await arm.deploy("flat", network())


async def test_a_server_too_busy_for_a_nested_template_leaves_nothing(
    arm: DeploymentClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = TemplateRunner.body

    async def body(runner: TemplateRunner, deployment: int, number: int) -> Evaluated:
        if deployment:
            raise Problem(503, "too-many-large-bodies", "try again in a moment")
        return await real(runner, deployment, number)

    monkeypatch.setattr(TemplateRunner, "body", body)
    await arm.ask("PUT", f"{DEPLOYMENTS}/outer", template(nested("inner", network())), 503)
    assert (await arm.get(DEPLOYMENTS))["value"] == []


async def test_deployments_are_listed_and_forgotten(arm: DeploymentClient) -> None:
    await arm.deploy("good", network(), tags={})
    await arm.fail("bad", resource("Microsoft.Nobody/things", "x"))
    assert {each["name"] for each in (await arm.get(DEPLOYMENTS))["value"]} == {"good", "bad"}
    failed = await arm.get(DEPLOYMENTS, filter="provisioningState eq 'Failed'")
    assert [each["name"] for each in failed["value"]] == ["bad"]
    assert len((await arm.get(DEPLOYMENTS, top="1"))["value"]) == 1
    await arm.ask("HEAD", f"{DEPLOYMENTS}/GOOD", None, 204)
    await arm.ask("DELETE", f"{DEPLOYMENTS}/good", None, 204)
    await arm.ask("DELETE", f"{DEPLOYMENTS}/good", None, 204)
    await arm.ask("HEAD", f"{DEPLOYMENTS}/good", None, 404)
    assert (await arm.get(f"{DEPLOYMENTS}/good", 404))["code"] == "DeploymentNotFound"
    await arm.get(f"{NETWORK}/virtualNetworks/net")
    await arm.get(f"{DEPLOYMENTS}/bad/operationStatuses/77", 404)
    resources = await arm.get(f"{GROUP}/resources")
    assert not [each for each in resources["value"] if "deployments" in each["type"]]


async def test_the_newest_deployment_is_listed_first(arm: DeploymentClient) -> None:
    for name in ("b", "a", "c"):
        await arm.deploy(name, network(), status=201)
        await arm.advance("1s")
    listed = (await arm.get(DEPLOYMENTS))["value"]
    assert [each["name"] for each in listed] == ["c", "a", "b"]
    last = (await arm.get(DEPLOYMENTS, top="1"))["value"]
    assert [each["name"] for each in last] == ["c"]


async def test_copies_are_made(arm: DeploymentClient) -> None:
    loop = {"name": "all", "count": 3}
    await arm.deploy("many", balancer("[concat('lb', copyIndex(1))]", copy=loop))
    list_reply = await arm.get(f"{NETWORK}/loadBalancers")
    assert [each["name"] for each in list_reply["value"]] == ["lb1", "lb2", "lb3"]


async def test_a_template_with_symbolic_names_makes_a_network_and_locks_it(
    arm: DeploymentClient,
) -> None:
    lock = resource("Microsoft.Authorization/locks", "keep", properties={"level": "CanNotDelete"})
    lock |= {"scope": "Microsoft.Network/virtualNetworks/net", "dependsOn": ["mine"]}
    made = await arm.deploy(
        "bicep",
        resources={"k": lock, "mine": network()},
        languageVersion="2.0",
        parameters={"at": {"type": "string", "defaultValue": "[utcNow('yyyy')]"}},
        outputs={"state": {"type": "string", "value": "[reference('mine').provisioningState]"}},
    )
    assert made["outputs"]["state"]["value"] == "Succeeded"
    assert len(made["parameters"]["at"]["value"]) == 4
    code, _ = await arm.refused("DELETE", f"{NETWORK}/virtualNetworks/net", status=409)
    assert code == "ScopeLocked"
