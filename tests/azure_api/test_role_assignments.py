"""Roles belong to tokens here, so ARM has none to list, and says so in its own form."""

import pytest

from tests.azure_api.arm_client import COMPUTE, GROUP, S
from tests.azure_api.scale_set_client import ScaleSetClient

PROVIDER = "providers/Microsoft.Authorization"


@pytest.mark.parametrize("scope", [S, GROUP, f"{COMPUTE}/virtualMachines/db"])
@pytest.mark.parametrize("what", ["roleAssignments", "roleDefinitions"])
async def test_no_role_is_assigned_anywhere(arm: ScaleSetClient, scope: str, what: str) -> None:
    assert await arm.get(f"{scope}/{PROVIDER}/{what}") == {"value": []}


async def test_a_role_cannot_be_assigned(arm: ScaleSetClient) -> None:
    body = {"properties": {"roleDefinitionId": "x", "principalId": "y"}}
    code, message = await arm.refused(
        "PUT", f"{S}/{PROVIDER}/roleAssignments/{'0' * 8}", body, status=409
    )
    assert code == "OperationNotAllowed"
    assert "fairwarning token create" in message
