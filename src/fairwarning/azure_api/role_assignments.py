"""These handlers list role assignments, of which there are none: each token has its own role."""

from fairwarning.azure_api.errors import not_allowed
from fairwarning.azure_api.request import Arm, ArmCall, Reply, Routes


async def list_none(_: Arm, __: ArmCall) -> Reply:
    return Reply(200, {"value": []})


async def refuse(_: Arm, __: ArmCall) -> Reply:
    raise not_allowed(
        "Roles are not assigned in Fairwarning: each token has one. Make a token with "
        "`fairwarning token create --role ROLE`, and log in with that."
    )


_NAMESPACE = "microsoft.authorization"
ROUTES: Routes = {
    ("GET", _NAMESPACE, "roleassignments"): list_none,
    ("GET", _NAMESPACE, "roledefinitions"): list_none,
    ("PUT", f"{_NAMESPACE}/roleassignments", ""): refuse,
}
