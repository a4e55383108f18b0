"""The fleet that every case uses, with the instance that the handler runs on."""

from typing import Any

from fairwarning.handler_check.namespace import ENDPOINT

VM, TWIN, NEIGHBOUR = "web-0", "web-1", "web-2"
"""TWIN shares the update domain of VM, so one event may affect both; NEIGHBOUR does not."""
MEMBER, SIMILAR = "workers_1", "workers_10"
"""Instances of a scale set, whose host names differ from their names."""
HOSTNAMES = {VM: VM, TWIN: TWIN, MEMBER: "workers000001"}
_ELSEWHERE = "10.213.0.1"


def fleet(vm: str, *, is_at_endpoint: bool) -> dict[str, Any]:
    """Return the fleet; with `is_at_endpoint`, `vm` has the address of the endpoint."""
    at = [ENDPOINT] if is_at_endpoint else []
    domains = {VM: 0, TWIN: 0, NEIGHBOUR: 1}
    return {
        "test": True,
        "availability_set": [
            {
                "name": "web",
                "update_domains": 2,
                "instances": [
                    {"name": name, "update_domain": domain, "addresses": at if name == vm else []}
                    for name, domain in domains.items()
                ],
            }
        ],
        "scale_set": [
            {
                "name": "workers",
                "capacity": 11,
                "terminate_notice": "PT5M",
                "addresses": [_ELSEWHERE, *at] if vm == MEMBER else [],
            }
        ],
    }
