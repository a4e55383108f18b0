"""The JSON that a program or a service of the operator gets for an impact."""

import json

from msgspec.structs import replace

from fairwarning.core.model import (
    EvictionPolicy,
    Instance,
    InstanceName,
    Power,
    Priority,
)
from fairwarning.drivers.orders import Action, order_json
from tests.drivers.orders import order


def test_an_instance_is_described_with_all_that_a_driver_may_need() -> None:
    instance = Instance(
        name=InstanceName("web-7"),
        update_domain=3,
        fault_domain=1,
        addresses=("10.0.0.7", "fd00::7"),
        tags={"rack": "ä"},
        priority=Priority.SPOT,
        eviction=EvictionPolicy.DELETE,
        power=Power.STOPPED,
    )
    asked = replace(order({}), instances=(instance,))
    said = json.loads(order_json(asked, Action.FIND))
    assert said["instances"] == [
        {
            "name": "web-7",
            # Without a handle, the driver finds it by its name.
            "handle": "web-7",
            "updateDomain": 3,
            "faultDomain": 1,
            "addresses": ["10.0.0.7", "fd00::7"],
            "tags": {"rack": "ä"},
            "priority": "Spot",
            "eviction": "Delete",
            "power": "stopped",
        }
    ]
    assert (said["action"], said["operation"]) == ("find", None)
