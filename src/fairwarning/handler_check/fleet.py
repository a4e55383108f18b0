"""The fleet that every case uses, with the instance that the handler runs on."""

from typing import Any

from fairwarning.handler_check.namespace import ENDPOINT

VM, TWIN, NEIGHBOUR = "web-0", "web-1", "web-2"
"""VM and TWIN share an update domain, so one event may affect both. NEIGHBOUR has another."""
MEMBER, SIMILAR = "workers_1", "workers_10"
"""Instances of a scale set. Their host names differ from their names."""
HOSTNAMES = {VM: VM, TWIN: TWIN, MEMBER: "workers000001"}
_ELSEWHERE = "10.213.0.1"


def fleet(vm: str, *, is_at_endpoint: bool) -> dict[str, Any]:
    """Return the fleet. If `is_at_endpoint` is true, `vm` has the endpoint's address."""
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
