"""Checks the commands of az for tags, locks, protection, upgrades and autoscale of a scale set."""

from tools.azure_cli.az import Az, require
from tools.azure_cli.scale_sets import GROUP

_SET = "Microsoft.Compute/virtualMachineScaleSets/uni"
_THIS = (*GROUP, "--name", "uni")


def play_management(az: Az) -> None:
    az("group", "create", "--name", "myResourceGroup", "--location", "westeurope")
    az.flowing(
        "vmss", "create", *_THIS, "--orchestration-mode", "Uniform", "--image", "UbuntuLTS",
        "--instance-count", "3", "--admin-username", "azureuser", "--generate-ssh-keys",
        "--terminate-notification-time", "5",
    )  # fmt: skip
    _tag(az)
    _lock(az)
    _protect(az)
    _upgrade(az)
    _autoscale(az)
    _empty(az)


def _tag(az: Az) -> None:
    this = ("--resource-id", az.id_of(_SET))
    az("tag", "create", *this, "--tags", "env=test", "team=a")
    az("tag", "update", *this, "--operation", "Merge", "--tags", "env=live")
    az("tag", "update", *this, "--operation", "Delete", "--tags", "team=a")
    found = az("tag", "list", *this)["properties"]["tags"]
    require(found == {"env": "live"}, f"the tags of the set: {found}")
    names = [each["tagName"] for each in az("tag", "list")]
    require(names == ["env"], f"the names of tags in use: {names}")
    az("tag", "delete", *this, "--yes")


def _lock(az: Az) -> None:
    kind = ("--resource", "uni", "--resource-type", "Microsoft.Compute/virtualMachineScaleSets")
    lock = ("--name", "keep", *GROUP, *kind)
    az("lock", "create", *lock, "--lock-type", "CanNotDelete", "--notes", "in use")
    az.refused("vmss", "delete", *_THIS, says="ScopeLocked")
    az.refused("vmss", "delete-instances", *_THIS, "--instance-ids", "0", says="ScopeLocked")
    az.refused("group", "delete", "--name", "myResourceGroup", "--yes", says="ScopeLocked")
    az("lock", "update", *lock, "--lock-type", "ReadOnly")
    az.refused("vmss", "scale", *_THIS, "--new-capacity", "2", says="write operation")
    shown = az("lock", "show", *lock)
    require(shown["level"] == "ReadOnly", f"the lock is strict now: {shown}")
    listed = az("lock", "list", *GROUP)
    require([each["name"] for each in listed] == ["keep"], f"the lock is listed: {listed}")
    az("lock", "delete", *lock)
    whole = ("--name", "all", *GROUP)
    az("group", "lock", "create", *whole, "--lock-type", "CanNotDelete")
    az("group", "lock", "delete", *whole)
    require(len(az.server.instances()) == 3, "nothing was deleted")


def _protect(az: Az) -> None:
    one = (*_THIS, "--instance-id", "2")
    az.flowing("vmss", "update", *one, "--protect-from-scale-in", "true")
    az.flowing("vmss", "scale", *_THIS, "--new-capacity", "2")
    left = set(az.server.instances())
    require(left == {"uni_0", "uni_2"}, f"the protected instance stays: {left}")
    az.flowing("vmss", "update", *one, "--protect-from-scale-in", "false",
               "--protect-from-scale-set-actions", "false")  # fmt: skip


def _upgrade(az: Az) -> None:
    az.flowing("vmss", "update", *_THIS, "--terminate-notification-time", "7",
               "--enable-terminate-notification", "true")  # fmt: skip
    az.flowing("vmss", "rolling-upgrade", "start", *_THIS)
    latest = az("vmss", "rolling-upgrade", "get-latest", *_THIS)
    count = latest["progress"]["successfulInstanceCount"]
    require(count == 2, f"both instances were upgraded: {latest}")
    sizes = [each["sku"]["name"] for each in az("vmss", "list-skus", *_THIS)]
    require("Standard_D2s_v5" in sizes, f"the sizes are listed: {sizes}")
    az.flowing("vmss", "set-orchestration-service-state", *_THIS, "--service-name",
               "AutomaticRepairs", "--action", "Suspend")  # fmt: skip
    services = az("vmss", "get-instance-view", *_THIS)["orchestrationServices"]
    require(services[0]["serviceState"] == "Suspended", f"the repairs are suspended: {services}")


def _autoscale(az: Az) -> None:
    setting = (*GROUP, "--name", "auto")
    az("monitor", "autoscale", "create", *setting, "--resource", az.id_of(_SET),
       "--min-count", "1", "--max-count", "5", "--count", "2")  # fmt: skip
    az("monitor", "autoscale", "rule", "create", *GROUP, "--autoscale-name", "auto",
       "--condition", "Percentage CPU < 30 avg 5m", "--scale", "in", "1")  # fmt: skip
    az("monitor", "autoscale", "update", *setting, "--max-count", "4")
    require(len(az("monitor", "autoscale", "list", *GROUP)) == 1, "the setting is listed")
    az.server.document("uni_0")
    url = f"{az.id_of('Microsoft.Insights/autoscaleSettings/auto')}/trigger"
    az("rest", "--method", "post", "--url", f"{url}?api-version=2022-10-01", "--body",
       '{"direction": "Decrease"}')  # fmt: skip
    event = az.server.wait_for_event("uni_0")
    require(event["EventType"] == "Terminate", f"autoscale warns whom it removes: {event}")
    with az.server.time_flowing():
        az.server.wait_until_quiet("uni_0")
    require(len(az.server.instances()) == 1, "one instance is left")
    az("monitor", "autoscale", "show", *setting)
    az("monitor", "autoscale", "delete", *setting)


def _empty(az: Az) -> None:
    az.flowing("vmss", "scale", *_THIS, "--new-capacity", "0")
    shown = az("vmss", "show", *_THIS)
    require(shown["sku"]["capacity"] == 0, f"an emptied set is a set: {shown['sku']}")
    az.flowing("vmss", "delete", *_THIS)
    require(not az("vmss", "list", *GROUP), "a deleted set is gone")
