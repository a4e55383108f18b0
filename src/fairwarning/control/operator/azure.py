"""What Azure's clients must be told to use this server."""

from fairwarning.azure_api.login import TENANT_ID
from fairwarning.control import shapes
from fairwarning.control.access import Role
from fairwarning.control.context import Control
from fairwarning.control.operation import Call, Operation
from fairwarning.core.resources import DEFAULT_SUBSCRIPTION


async def show(control: Control, _: Call[shapes.NoQuery, None]) -> shapes.AzureShown:
    return shapes.AzureShown(
        url=control.azure.url or None,
        ca=control.azure.authority,
        tenant=TENANT_ID,
        subscription=DEFAULT_SUBSCRIPTION,
    )


OPERATIONS = (
    Operation(method="GET", path="/azure", summary="Where and how Azure's clients find this server",
              role=Role.VIEWER, handle=show, answer=shapes.AzureShown),
)  # fmt: skip
