"""Checks the commands of az for virtual machines and availability sets."""

from tools.azure_cli.az import Az, require
from tools.azure_cli.scale_sets import GROUP, maintain

_WHAT = ("--image", "UbuntuLTS", "--admin-username", "azureuser", "--generate-ssh-keys")


def play_virtual_machines(az: Az) -> None:
    az("group", "create", "--name", "myResourceGroup", "--location", "westeurope")
    az.flowing("vm", "availability-set", "create", *GROUP, "--name", "avset")
    for name in ("vm-0", "vm-1"):
        made = az.flowing("vm", "create", *GROUP, "--name", name, *_WHAT,
                          "--availability-set", "avset")  # fmt: skip
        found = az.server.instances()[name]["addresses"]
        require(found == [made["privateIpAddress"]], f"az prints the address of {name}: {found}")
    domains = [each["updateDomain"] for each in az.server.instances_of("avset").values()]
    require(domains == [0, 1], f"members are spread over update domains: {domains}")
    az.flowing("vm", "create", *GROUP, "--name", "alone", *_WHAT)
    az.flowing("vm", "create", *GROUP, "--name", "cheap", *_WHAT,
               "--priority", "Spot", "--eviction-policy", "Deallocate")  # fmt: skip
    _look(az)
    _operate(az)
    _evict(az)
    for name in ("alone", "cheap", "vm-0"):
        az.flowing("vm", "delete", *GROUP, "--name", name, "--yes")
        require(name not in az.server.instances(), f"{name} is gone")
    az.flowing("group", "delete", "--name", "myResourceGroup", "--yes")
    require(not az.server.instances(), "the group took all along")


def _look(az: Az) -> None:
    everyone = ["alone", "cheap", "vm-0", "vm-1"]
    for more in ((*GROUP,), (), (*GROUP, "--show-details")):
        names = sorted(each["name"] for each in az("vm", "list", *more))
        require(names == everyone, f"all are listed: {names}")
    shown = az("vm", "show", *GROUP, "--name", "vm-0")
    require(shown["provisioningState"] == "Succeeded", f"it is made: {shown}")
    view = az("vm", "get-instance-view", *GROUP, "--name", "vm-1")["instanceView"]
    require(view["platformUpdateDomain"] == 1, f"the view tells the domain: {view}")


def _operate(az: Az) -> None:
    az.server.document("vm-1")
    for verb, type in (("restart", "Reboot"), ("redeploy", "Redeploy")):
        with az.waiting("vm", verb, *GROUP, "--name", "vm-0"):
            event = az.server.wait_for_event("vm-1")
            require(event["EventType"] == type, f"a {type} was announced: {event}")
            require(event["Resources"] == ["vm-0"], f"it is about vm-0: {event}")
            az.server.approve("vm-0", event["EventId"])
    for verb, power in (("deallocate", "deallocated"), ("start", "running"), ("stop", "stopped")):
        az.flowing("vm", verb, *GROUP, "--name", "alone")
        found = az.server.instances()["alone"]["power"]
        require(found == power, f"the VM is {power}, not {found}")
    az.flowing("vm", "update", *GROUP, "--name", "alone", "--set", "tags.team=blue")
    tags = az.server.instances()["alone"]["tags"]
    require(tags.get("team") == "blue", f"the tag is there: {tags}")
    maintain(az, "vm-1", "vm", "perform-maintenance", *GROUP, "--name", "vm-1")


def _evict(az: Az) -> None:
    az.server.document("cheap")
    az("vm", "simulate-eviction", *GROUP, "--name", "cheap")
    (event,) = az.server.document("cheap")
    require(event["EventType"] == "Preempt", f"a Preempt was announced: {event}")
    with az.server.time_flowing():
        az.server.wait_until_quiet("cheap")
    power = az.server.instances()["cheap"]["power"]
    require(power == "deallocated", f"the evicted VM is deallocated, not {power}")
    az.refused("vm", "simulate-eviction", *GROUP, "--name", "alone", says="only for Spot")
