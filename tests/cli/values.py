"""JSON as the API gives it, for tests of what is made of it."""

from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]
NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
ID = "602D9444-D2CD-49C7-8624-8643E7171297"
OTHER_ID = "602D9999-D2CD-49C7-8624-8643E7171297"
WEB = "sub/group/availability-set/web"


def an_entry(**changes: Any) -> Json:
    return {
        "position": "7",
        "at": "2026-11-16T12:00:00.000Z",
        "scope": WEB,
        "event": ID,
        "kind": "Scheduled",
        "by": "operator:eva",
        "why": "",
        "text": "Reboot of web-0 is scheduled",
        "data": {},
        **changes,
    }


def an_event(**changes: Any) -> Json:
    return {
        "id": ID,
        "scope": WEB,
        "type": "Reboot",
        "phase": "scheduled",
        "source": "Platform",
        "resources": ["web-0"],
        "updateDomain": 0,
        "notBefore": "2026-11-16T12:15:00.000Z",
        "description": "",
        "durationSeconds": -1,
        "created": "2026-11-16T12:00:00.000Z",
        "started": None,
        "ended": None,
        "outcome": "",
        "startCause": None,
        "operation": None,
        "announced": True,
        "replacedBy": None,
        "approvals": [],
        "timeline": [],
        **changes,
    }


def an_instance(name: str, domain: int = 0, **changes: Any) -> Json:
    return {
        "name": name,
        "updateDomain": domain,
        "faultDomain": 0,
        "addresses": [],
        "tags": {},
        "priority": "Regular",
        "eviction": "Deallocate",
        "power": "running",
        "terminateNotice": None,
        "reimageNotice": None,
        "latestModelApplied": True,
        **changes,
    }


def a_scope(id: str = WEB, *instances: Json, **changes: Any) -> Json:
    return {
        "id": id,
        "kind": "availability-set",
        "name": id.rsplit("/", 1)[-1],
        "subscription": "sub",
        "resourceGroup": "group",
        "location": "local",
        "test": False,
        "driver": "simulated",
        "origin": "api",
        "updateDomains": 3,
        "faultDomains": 2,
        "activated": True,
        "incarnation": 1,
        "lastSeen": None,
        "terminateNotice": None,
        "orchestration": None,
        "capacity": len(instances),
        "model": {"generation": 1, "terminateNotice": None, "reimageNotice": None},
        "policy": {
            "approveUserReboot": False,
            "approveUserRedeploy": False,
            "approveAllInstancesDown": True,
            "notice": {},
        },
        "pendingEvents": 0,
        "instances": list(instances),
        **changes,
    }
