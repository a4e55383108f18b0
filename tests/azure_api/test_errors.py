"""Refusals in the form that Azure's clients print as one line."""

import pytest
from starlette.requests import ClientDisconnect

from fairwarning.azure_api.errors import (
    ArmError,
    Failure,
    as_arm_error,
    not_found,
    of_refusal,
)
from fairwarning.core.refusals import Code, Refused
from fairwarning.engine.protocols import RecordChanged, StoreDown
from fairwarning.operator_api.problems import Problem


@pytest.mark.parametrize(
    ("code", "status", "azure"),
    [
        (Code.NOT_SPOT, 409, "OperationNotAllowed"),
        (Code.TOO_MANY_OPERATIONS, 409, "OperationNotAllowed"),
        (Code.TERMINATE_NOTICE_INVALID, 400, "InvalidParameter"),
        (Code.NAME_INVALID, 400, "InvalidResourceName"),
        (Code.UNKNOWN_INSTANCE, 404, "ResourceNotFound"),
        (Code.INSTANCE_DELETED, 404, "ResourceNotFound"),
        (Code.DESCRIPTION_TOO_LONG, 400, "InvalidParameter"),
        (Code.SCOPE_FULL, 409, "Conflict"),
    ],
)
def test_a_refusal_keeps_its_sentence_and_gets_azures_code(
    code: Code, status: int, azure: str
) -> None:
    found = of_refusal(Refused(code, "do this"))
    assert (found.status, found.failure.code, found.failure.message) == (status, azure, "do this")


@pytest.mark.parametrize("code", Code)
def test_every_refusal_is_the_callers_to_mend(code: Code) -> None:
    assert 400 <= of_refusal(Refused(code, "x")).status < 500


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ArmError(418, "Teapot", "x"), 418, "Teapot"),
        (Problem(401, "token-needed", "x"), 401, "AuthenticationFailed"),
        (Problem(403, "role-too-low", "x"), 403, "AuthorizationFailed"),
        (Problem(413, "body-too-large", "x"), 413, "RequestEntityTooLarge"),
        (Problem(408, "body-too-slow", "x"), 408, "RequestTimeout"),
        (RecordChanged(), 409, "AnotherOperationInProgress"),
        (ClientDisconnect(), 400, "InvalidRequestContent"),
        (StoreDown("gone"), 503, None),
        (ValueError("a bug with a secret"), 500, None),
    ],
)
def test_whatever_goes_wrong_has_azures_form(
    error: Exception, status: int, code: str | None
) -> None:
    found = as_arm_error(error)
    assert found.status == status
    assert code in (None, found.failure.code)
    assert "secret" not in found.failure.message


def test_an_outage_says_when_to_come_again() -> None:
    assert "Retry-After" in as_arm_error(StoreDown("gone")).headers


def test_details_and_targets_are_left_out_if_there_are_none() -> None:
    inner = Failure(code="A", message="b", target="c")
    assert Failure(code="X", message="y", details=(inner,)).json() == {
        "code": "X",
        "message": "y",
        "details": [{"code": "A", "message": "b", "target": "c"}],
    }


def test_a_missing_resource_is_said_in_azures_words() -> None:
    assert not_found("Microsoft.Compute/virtualMachines", "v", "G").failure.message == (
        "The Resource 'Microsoft.Compute/virtualMachines/v' under resource group 'G' was not found."
    )
