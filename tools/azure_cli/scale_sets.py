"""Checks the commands of az for scale sets."""

import json

from tools.azure_cli.az import Az, require

GROUP = ("--resource-group", "myResourceGroup")
_SPOT = ("--priority", "Spot", "--eviction-policy", "Delete")
_DOCUMENTED = json.dumps(
    {
        "properties": {
            "virtualMachineProfile": {
                "scheduledEventsProfile": {
                    "terminateNotificationProfile": {"notBeforeTimeout": "PT5M", "enable": True}
                }
            }
        }
    }
)
"""The body of the page about Terminate, for an existing set."""
_UNIFORM = ("--orchestration-mode", "Uniform")


def play_documented(az: Az) -> None:
    """Runs the lines of Microsoft's page about Terminate, and what may follow them."""
    require(az("role", "assignment", "list") == [], "roles belong to tokens")
    az("group", "create", "--name", "myResourceGroup", "--location", "westeurope")
    this = (*GROUP, "--name", "myVMScaleSet")
    az.flowing(
        "vmss", "create", *this, "--image", "UbuntuLTS", "--admin-username", "azureuser",
        "--generate-ssh-keys", "--terminate-notification-time", "10",
    )  # fmt: skip
    names = list(az.server.instances_of("myVMScaleSet"))
    require(len(names) == 2, f"two instances were made, not {names}")
    require(notice(az) == "PT10M", f"the notice of Terminate is PT10M, not {notice(az)}")
    addresses = [each["addresses"] for each in az.server.instances().values()]
    require(all(addresses), f"each instance has an address: {addresses}")
    az.flowing(
        "vmss", "update", *this, "--enable-terminate-notification", "true",
        "--terminate-notification-time", "10",
    )  # fmt: skip
    az.flowing("vmss", "update", *this, "--terminate-notification-time", "7",
               "--enable-terminate-notification", "true")  # fmt: skip
    require(notice(az) == "PT7M", f"the notice of Terminate is PT7M, not {notice(az)}")
    require(not are_latest(az, "myVMScaleSet"), "instances keep their model at first")
    url = az.id_of("Microsoft.Compute/virtualMachineScaleSets/myVMScaleSet")
    az("rest", "--method", "put", "--body", _DOCUMENTED, "--url", f"{url}?api-version=2019-03-01")
    require(notice(az) == "PT5M", f"the documented body says PT5M, not {notice(az)}")
    az.flowing("vmss", "update-instances", *this, "--instance-ids", "*")
    require(are_latest(az, "myVMScaleSet"), "all instances have the latest model")
    found = az("vm", "list", *GROUP, "--vmss", "myVMScaleSet")
    require({each["name"] for each in found} == set(names), "instances are VMs too")
    _delete_with_notice(az, this, names[0], names[0], names[1])
    az.flowing("vmss", "delete", *this)
    require(not az.server.instances_of("myVMScaleSet"), "the set is gone")


def notice(az: Az) -> str:
    return str(az.server.scope_of("myVMScaleSet")["terminateNotice"])


def are_latest(az: Az, name: str) -> bool:
    return all(each["latestModelApplied"] for each in az.server.instances_of(name).values())


def _delete_with_notice(az: Az, this: tuple[str, ...], id: str, name: str, other: str) -> None:
    """Deletes an instance: Terminate is announced to the set, approved, and carried out."""
    az.server.document(other)
    with az.waiting("vmss", "delete-instances", *this, "--instance-ids", id):
        event = az.server.wait_for_event(other)
        require(event["EventType"] == "Terminate", f"a Terminate was announced: {event}")
        require(event["Resources"] == [name], f"it is about {name}: {event}")
        require(name in az.server.instances(), "nothing is deleted before its notice is over")
        az.server.approve(name, event["EventId"])
    require(name not in az.server.instances(), f"{name} is gone")
    require(az.server.document(other) == [], "its event is gone too")


def play_uniform(az: Az) -> None:
    """Runs every command on a uniform set, whose instances have numbers."""
    az("group", "create", "--name", "myResourceGroup", "--location", "westeurope")
    this = (*GROUP, "--name", "uni")
    az.flowing(
        "vmss", "create", *this, *_UNIFORM, "--image", "UbuntuLTS", "--instance-count", "2",
        "--admin-username", "azureuser", "--generate-ssh-keys",
        "--terminate-notification-time", "5",
    )  # fmt: skip
    az.flowing("vmss", "scale", *this, "--new-capacity", "4")
    require(len(az.server.instances()) == 4, "there are four instances")
    listed = az("vmss", "list-instances", *this)
    require([each["instanceId"] for each in listed] == ["0", "1", "2", "3"], "all four are listed")
    told = az.server.metadata("uni_0")["compute"]
    require(told["vmScaleSetName"] == "uni", f"the instance knows its set: {told}")
    _delete_with_notice(az, this, "3", "uni_3", "uni_0")
    _operate(az, "Reboot", "vmss", "restart", *this, "--instance-ids", "0")
    url = f"{az.id_of('Microsoft.Compute/virtualMachineScaleSets/uni')}/redeploy"
    body = '{"instanceIds": ["0"]}'
    az("rest", "--method", "post", "--body", body, "--url", f"{url}?api-version=2024-11-01")
    with az.server.time_flowing():
        az.server.wait_until_quiet("uni_0")
    az.flowing("vmss", "reimage", *this, "--instance-ids", "0")
    require(az.server.document("uni_0") == [], "no reimage is announced unasked")
    maintain(az, "uni_1", "vmss", "perform-maintenance", *this)
    _power(az, this)
    az.flowing("vmss", "update", *this, "--enable-user-reboot-scheduled-events", "true",
               "--enable-user-redeploy-scheduled-events", "true",
               "--additional-scheduled-events", "true")  # fmt: skip
    az.flowing("vmss", "restart", *this, "--instance-ids", "1")
    newest = az.server.events(type="Reboot", source="User")[0]
    approvals = str(newest["approvals"])
    require("userInitiatedReboot" in approvals, f"the policy approved in advance: {newest}")
    _look(az, this)
    az.refused("vmss", "simulate-eviction", *this, "--instance-id", "0", says="only for Spot")
    az.flowing("vmss", "delete", *this)
    require(not az.server.instances(), "the set is gone")


def maintain(az: Az, name: str, *command: str) -> None:
    """Lets an owner take maintenance of the platform early."""
    az.server.schedule("Reboot", name)
    with az.waiting(*command):
        az.server.wait_until_started(name)
    newest = az.server.events(type="Reboot", source="Platform")[0]
    require(newest["phase"] == "completed", f"the maintenance was carried out: {newest}")
    require(newest["startCause"] == "approved", f"it was taken early: {newest}")


def _operate(az: Az, type: str, *command: str) -> None:
    with az.waiting(*command):
        event = az.server.wait_for_event("uni_0")
        require(event["EventType"] == type, f"a {type} was announced: {event}")
        require(event["EventSource"] == "User", f"its source is User: {event}")
        az.server.approve("uni_0", event["EventId"])
    require(az.server.document("uni_0") == [], "the event is over")


def _power(az: Az, this: tuple[str, ...]) -> None:
    for verb, power in (("deallocate", "deallocated"), ("start", "running"), ("stop", "stopped")):
        az.flowing("vmss", verb, *this, "--instance-ids", "2")
        found = az.server.instances()["uni_2"]["power"]
        require(found == power, f"uni_2 is {power}, not {found}")


def _look(az: Az, this: tuple[str, ...]) -> None:
    whole = az("vmss", "get-instance-view", *this)
    require(bool(whole["virtualMachine"]["statusesSummary"]), "the view of the set counts")
    one = az("vmss", "get-instance-view", *this, "--instance-id", "0")
    codes = [each["code"] for each in one["statuses"]]
    require("PowerState/running" in codes, f"the view of an instance tells its power: {codes}")
    shown = az("vmss", "show", *this)
    require(shown["sku"]["capacity"] == 3, f"the set has three instances: {shown['sku']}")
    for where in (GROUP, ()):
        names = [each["name"] for each in az("vmss", "list", *where)]
        require(names == ["uni"], f"the set is listed: {names}")


def play_spot(az: Az) -> None:
    az("group", "create", "--name", "myResourceGroup", "--location", "westeurope")
    this = (*GROUP, "--name", "spot")
    az.flowing(
        "vmss", "create", *this, *_UNIFORM, *_SPOT, "--image", "UbuntuLTS",
        "--instance-count", "2", "--admin-username", "azureuser", "--generate-ssh-keys",
    )  # fmt: skip
    az.server.document("spot_1")
    az("vmss", "simulate-eviction", *this, "--instance-id", "0")
    (event,) = az.server.document("spot_1")
    require(event["EventType"] == "Preempt", f"a Preempt was announced: {event}")
    with az.server.time_flowing():
        az.server.wait_until_quiet("spot_1")
    require(list(az.server.instances()) == ["spot_1"], "the evicted instance is gone")
    az.flowing("group", "delete", "--name", "myResourceGroup", "--yes")
    require(not az.server.instances(), "the group took its set along")
