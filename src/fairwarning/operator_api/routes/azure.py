"""The route that tells how az and the SDKs reach this server."""

from fairwarning.azure_api.discovery import TENANT_ID
from fairwarning.core.resources import DEFAULT_SUBSCRIPTION
from fairwarning.operator_api import schemas
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.route import Call, Route


async def get_azure_setup(control: Control, _: Call[schemas.NoQuery, None]) -> schemas.AzureOut:
    return schemas.AzureOut(
        url=control.azure.url or None,
        ca=control.azure.authority,
        tenant=TENANT_ID,
        subscription=DEFAULT_SUBSCRIPTION,
    )


ROUTES = (
    Route(method="GET", path="/azure", summary="Where and how Azure's clients find this server",
          role=Role.VIEWER, handle=get_azure_setup, answer=schemas.AzureOut),
)  # fmt: skip
