"""The instances that a case has, for any name of the handler's VM."""

import pytest

from fairwarning.handler_check.fleet import fleet, instances
from fairwarning.handler_check.namespace import ENDPOINT
from fairwarning.testing import Server


@pytest.mark.parametrize(
    "vm",
    ["web-0", "web-1", "db", "workers_0", "workers_1", "aks-pool-123-vmss_24", "s_98", "s_199"],
)
def test_all_instances_of_a_case_see_the_same_event(vm: str) -> None:
    found = instances(vm)
    assert len({vm, found.twin, found.neighbour}) == 3
    with Server(fleet=fleet(vm, is_at_endpoint=False)) as server:
        seen_from = [vm, found.twin, found.neighbour, *([found.similar] if found.similar else [])]
        for each in seen_from:
            server.vm(each).document()
        server.schedule("Freeze", found.twin, vm)
        for each in seen_from:
            (event,) = server.vm(each).document()["Events"]
            assert event["Resources"] == [found.twin, vm]


@pytest.mark.parametrize(("vm", "number"), [("workers_1", 1), ("s_24", 24)])
def test_the_instance_of_the_handler_has_the_address_of_the_endpoint(vm: str, number: int) -> None:
    """The n-th address of a scale set is the one of its instance n."""
    (found,) = fleet(vm, is_at_endpoint=True)["scale_set"]
    assert found["addresses"].index(ENDPOINT) == number
    with Server(fleet=fleet(vm, is_at_endpoint=True)):
        pass  # A mistake in the fleet would be raised.


def test_an_instance_of_a_scale_set_has_another_host_name() -> None:
    assert instances("workers_1").hostname == "workers000001"
    assert instances("s_71").hostname == "s00001Z"
    assert instances("web-0").hostname == "web-0"


@pytest.mark.parametrize(
    ("vm", "capacity"), [("s_0", 3), ("s_1", 11), ("s_24", 100), ("s_98", 100), ("s_199", 200)]
)
def test_a_scale_set_ends_with_the_placement_group_of_the_handler(vm: str, capacity: int) -> None:
    (found,) = fleet(vm, is_at_endpoint=False)["scale_set"]
    assert found["capacity"] == capacity
