"""Renders errors in ARM's format, which Azure's clients print as one line."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from starlette.requests import ClientDisconnect

from fairwarning.core.refusals import Code, Refused
from fairwarning.engine.protocols import RecordChanged, StoreDown
from fairwarning.operator_api.problems import Problem, of_bug, of_outage


class Failure(Struct, frozen=True, kw_only=True):
    """The content of an error, which az prints as `(code) message`."""

    code: str
    message: str
    details: tuple["Failure", ...] = ()
    target: str = ""

    def json(self) -> dict[str, object]:
        more: dict[str, object] = {}
        if self.target:
            more["target"] = self.target
        if self.details:
            more["details"] = [each.json() for each in self.details]
        return {"code": self.code, "message": self.message, **more}


class ArmError(Exception):
    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        details: Sequence[Failure] = (),
        target: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.failure = Failure(code=code, message=message, details=tuple(details), target=target)
        self.headers = dict(headers or {})


_AZURE_CODES = {
    Code.NOT_SPOT: (409, "OperationNotAllowed"),
    Code.TOO_MANY_OPERATIONS: (409, "OperationNotAllowed"),
    Code.INSTANCE_PROTECTED: (409, "OperationNotAllowed"),
    Code.ALREADY_PENDING: (409, "Conflict"),
    Code.TERMINATE_NOTICE_INVALID: (400, "InvalidParameter"),
    Code.TERMINATE_NOT_FOR_SPOT: (400, "InvalidParameter"),
    Code.NAME_INVALID: (400, "InvalidResourceName"),
}


def of_refusal(refused: Refused) -> ArmError:
    if refused.code in _AZURE_CODES:
        status, code = _AZURE_CODES[refused.code]
        return ArmError(status, code, refused.message)
    word = refused.code.value
    if word.startswith("unknown-") or refused.code is Code.INSTANCE_DELETED:
        return ArmError(404, "ResourceNotFound", refused.message)
    is_invalid = word.endswith(("-invalid", "-too-long"))
    status, code = (400, "InvalidParameter") if is_invalid else (409, "Conflict")
    return ArmError(status, code, refused.message)


_LOG_IN_AGAIN = (
    "This needs a token of Fairwarning that is valid: wrong, revoked and expired ones are refused "
    "alike. Log in with a new one: `fairwarning azure-setup --run`."
)


def bad_token() -> ArmError:
    challenge = 'Bearer error="invalid_token", error_description="The access token is invalid."'
    return ArmError(
        401,
        "InvalidAuthenticationToken",
        f"The access token is invalid. {_LOG_IN_AGAIN}",
        headers={"WWW-Authenticate": challenge},
    )


_CODES_BY_STATUS = {
    401: "AuthenticationFailed",
    403: "AuthorizationFailed",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "RequestTimeout",
    409: "Conflict",
    412: "PreconditionFailed",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    429: "TooManyRequests",
    500: "InternalServerError",
    503: "ServiceUnavailable",
}
"""Azure's codes for the problems of this server. Clients know no others."""


def of_problem(problem: Problem) -> ArmError:
    code = _CODES_BY_STATUS.get(problem.status, "BadRequest")
    detail = _LOG_IN_AGAIN if problem.status == 401 else problem.detail
    return ArmError(problem.status, code, detail, headers=problem.headers)


def as_arm_error(error: Exception) -> ArmError:
    match error:
        case ArmError():
            return error
        case Refused():
            return of_refusal(error)
        case Problem():
            return of_problem(error)
        case RecordChanged():
            return ArmError(
                409,
                "AnotherOperationInProgress",
                "Another operation on this or a dependent resource is in progress; try again.",
            )
        case ClientDisconnect():
            return ArmError(400, "InvalidRequestContent", "The body ended early; send it again.")
        case StoreDown():
            return of_problem(of_outage())
        case _:
            return of_problem(of_bug())


def not_found(type: str, name: str, group: str) -> ArmError:
    """Returns a 404 error with Azure's message. az then ends with exit code 3."""
    return ArmError(
        404,
        "ResourceNotFound",
        f"The Resource '{type}/{name}' under resource group '{group}' was not found.",
    )


def invalid_parameter(name: str, message: str) -> ArmError:
    """Returns the error for a member of the body whose value is not valid."""
    return ArmError(400, "InvalidParameter", message, target=name)


def invalid_value(name: str, value: object, hint: str) -> ArmError:
    message = f"The value '{str(value)[:40]}' of parameter '{name}' is invalid; {hint}."
    return invalid_parameter(name, message)


def not_changeable(name: str) -> ArmError:
    message = f"Changing property '{name}' is not allowed."
    return ArmError(409, "PropertyChangeNotAllowed", message, target=name)


def not_allowed(message: str) -> ArmError:
    """Returns the error for a change that the resource does not allow in its present state."""
    return ArmError(409, "OperationNotAllowed", message)
