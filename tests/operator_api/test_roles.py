"""Who may ask for what: every operation against every role.

The table is written by hand, from docs/access.md. A new operation needs its line here.
"""

import httpx

from fairwarning.operator_api.app import ROUTES
from tests.operator_api.rig import Rig

ROLES = ("viewer", "approver", "operator", "admin")
NEEDED = {
    "viewer": """
        GET /fleet
        POST /fleet/plan
        GET /resources
        GET /scopes/{scope:path}
        GET /instances/{instance:path}
        POST /scopes/{scope:path}/scale/plan
        GET /events
        GET /events/{id}
        GET /events/{id}/documents
        GET /event-counts
        POST /rollouts/plan
        GET /rollouts
        GET /rollouts/{id}
        GET /rollouts/{id}/steps
        GET /history
        GET /clock
        GET /me
        GET /faults
        GET /requests
        GET /azure
    """,
    "approver": """
        POST /events/{id}/approve
    """,
    "operator": """
        PUT /fleet
        POST /fleet
        DELETE /resources/{resource:path}
        DELETE /scopes/{scope:path}
        DELETE /instances/{instance:path}
        POST /instances/{instance:path}/replace
        POST /instances/{instance:path}/restart
        POST /instances/{instance:path}/redeploy
        POST /instances/{instance:path}/reimage
        POST /instances/{instance:path}/delete
        POST /instances/{instance:path}/evict
        POST /instances/{instance:path}/start
        POST /instances/{instance:path}/stop
        POST /instances/{instance:path}/deallocate
        POST /scopes/{scope:path}/scale
        POST /scopes/{scope:path}/model
        POST /scopes/{scope:path}/upgrade
        POST /scopes/{scope:path}/policy
        POST /events
        POST /events/{id}/cancel
        POST /events/{id}/postpone
        POST /rollouts
        POST /rollouts/{id}/pause
        POST /rollouts/{id}/resume
        POST /rollouts/{id}/cancel
        POST /clock/advance
        POST /faults
        DELETE /faults
        DELETE /faults/{id}
        POST /requests/watch
        DELETE /requests/watch
    """,
    "admin": """
        GET /tokens
        POST /tokens
        DELETE /tokens/{id}
        GET /notifications
        POST /notifications
        DELETE /notifications/{id}
        POST /notifications/{id}/test
        GET /notifications/dead-letters
        POST /notifications/dead-letters/{id}/retry
        DELETE /notifications/dead-letters/{id}
    """,
}
ARM = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/default"
VM = f"{ARM}/providers/Microsoft.Compute/virtualMachines/nope"
MAINTENANCE = f"{VM}/providers/Microsoft.Maintenance/scheduledevents/nope"
# Paths beside the table of operations, with the role that each method needs.
BESIDE = [
    ("GET", "/api/v1/stream", "viewer"),
    ("GET", "/metrics", "viewer"),
    ("GET", ARM, "viewer"),
    ("HEAD", ARM, "viewer"),
    ("GET", VM, "viewer"),
    ("PUT", VM, "operator"),
    ("PATCH", VM, "operator"),
    ("DELETE", VM, "operator"),
    ("POST", f"{VM}/restart", "operator"),
    ("PUT", ARM, "operator"),
    ("DELETE", f"{ARM}/providers/Microsoft.Network/networkInterfaces/nope", "operator"),
    ("POST", f"{MAINTENANCE}/acknowledge", "approver"),
]


def lines(role: str) -> list[tuple[str, str]]:
    found = [line.split() for line in NEEDED[role].strip().splitlines()]
    return [(method, path) for method, path in found]


async def secrets(rig: Rig) -> dict[str, str]:
    made = {}
    for role in ROLES:
        found = await rig.post("/tokens", {"name": f"a-{role}", "role": role}, 201)
        made[role] = found["secret"]
    return made


def test_the_table_has_every_operation_once() -> None:
    shown = sorted((each.method, each.path) for each in ROUTES)
    assert sorted(line for role in NEEDED for line in lines(role)) == shown


async def ask(api: httpx.AsyncClient, method: str, url: str, secret: str | None) -> httpx.Response:
    """About something that is not there, so that whoever may ask changes nothing."""
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    async with api.stream(method, url, headers=headers) as answer:
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            return answer
        await answer.aread()
        return answer


async def test_each_operation_is_for_its_role_and_those_above(rig: Rig) -> None:
    made = await secrets(rig)
    for needed in ROLES:
        for method, path in lines(needed):
            url = path
            for name in ("{scope:path}", "{instance:path}", "{id}"):
                url = url.replace(name, "nope")
            for role in ROLES:
                answer = await ask(rig.api, method, url, made[role])
                context = (method, path, role, answer.status_code)
                if ROLES.index(role) < ROLES.index(needed):
                    assert Rig.check(answer, 403)["code"] == "role-too-low", context
                    assert f"needs the role {needed}" in answer.json()["detail"], context
                else:
                    assert answer.status_code not in (401, 403, 405, 500), context


async def test_so_is_what_is_beside_the_operations(rig: Rig) -> None:
    made = await secrets(rig)
    for method, path, needed in BESIDE:
        url = f"{rig.node.control_url}{path}?api-version=2024-07-01"
        for role in ROLES:
            answer = await ask(rig.api, method, url, made[role])
            is_too_low = ROLES.index(role) < ROLES.index(needed)
            context = (method, path, role, answer.status_code)
            assert (answer.status_code == 403) is is_too_low, context
            assert answer.status_code not in (401, 405, 500), context
        answer = await ask(rig.api, method, url, "fw_0123456789ab_" + "x" * 43)
        assert answer.status_code == 401, (method, path)
