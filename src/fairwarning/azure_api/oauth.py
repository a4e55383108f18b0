"""Reads requests for access tokens and renders refusals in the format of OAuth 2.0."""

import base64
import logging
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote_plus

import msgspec
from starlette.responses import Response

from fairwarning.azure_api.errors import as_arm_error
from fairwarning.azure_api.operations import new_operation_id

UNCACHED = {"Cache-Control": "no-store", "Pragma": "no-cache"}
_FIELDS_MAX = 50
_NUMBER = re.compile(r"^AADSTS(\d+): ")
"""The error number at the start of a description. Azure's clients show it separately."""
_log = logging.getLogger(__name__)


class OAuthError(Exception):
    """A refusal in the format of OAuth. az prints its description."""

    def __init__(
        self, status: int, code: str, description: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(description)
        self.status = status
        self.code = code
        self.headers = headers or {}


class Grant(NamedTuple):
    """What a client sends to get an access token."""

    secret: str
    client_id: str = ""
    scopes: frozenset[str] = frozenset()
    resource: str = ""
    """What the token is for, in the first version of the login, which has no scopes."""


def read_grant(media_type: str, raw: bytes, authorization: str | None) -> Grant:
    """Reads a request for an access token. Raises OAuthError."""
    form = read_form(media_type, raw)
    grant = form.get("grant_type")
    if grant is None:
        raise _invalid("AADSTS900144: The form must contain 'grant_type'; send client_credentials.")
    if grant != "client_credentials":
        raise OAuthError(
            400,
            "unsupported_grant_type",
            "AADSTS70003: Fairwarning knows service principals only, not the grant type "
            f"'{grant[:60]}'. Log in with `az login --service-principal`; "
            "`fairwarning azure-setup --run` does that.",
        )
    given = [*_in_form(form), *_in_header(authorization)]
    if len(given) > 1:
        raise _invalid("The secret is given in the form and in the header; send it once.")
    if not given:
        raise OAuthError(
            401,
            "invalid_client",
            "AADSTS7000218: The request must contain 'client_secret', a token of Fairwarning; "
            "certificates and assertions are not taken.",
        )
    client_id, secret = given[0]
    return Grant(
        secret, client_id, frozenset(form.get("scope", "").split()), form.get("resource", "")
    )


def read_form(media_type: str, raw: bytes) -> Mapping[str, str]:
    if media_type.partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise _invalid("Send the request as application/x-www-form-urlencoded.")
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, strict_parsing=bool(raw),
            errors="strict", max_num_fields=_FIELDS_MAX,
        )  # fmt: skip
    except ValueError:
        raise _invalid("AADSTS90023: The form cannot be read; mend how it is encoded.") from None
    form = dict(pairs)
    if len(form) < len(pairs):
        raise _invalid("The form names something twice; send each parameter once.")
    return form


def _in_form(form: Mapping[str, str]) -> list[tuple[str, str]]:
    """Returns the client's id and secret, if the form has a secret."""
    secret = form.get("client_secret")
    return [(form.get("client_id", ""), secret)] if secret else []


def _in_header(authorization: str | None) -> list[tuple[str, str]]:
    if authorization is None:
        return []
    scheme, _, text = authorization.partition(" ")
    try:
        if scheme.lower() != "basic":
            raise ValueError(scheme)
        decoded = base64.b64decode(text.strip(), validate=True).decode("ascii")
    except ValueError:
        raise _invalid(
            "The header Authorization must be Basic with client id and secret."
        ) from None
    client_id, _, secret = decoded.partition(":")
    return [(unquote_plus(client_id), unquote_plus(secret))]


def oauth_response(error: Exception) -> Response:
    found = error if isinstance(error, OAuthError) else _as_oauth(error)
    headers = {"WWW-Authenticate": 'Basic realm="Fairwarning"'} if found.status == 401 else {}
    description = str(found)
    body = {
        "error": found.code,
        "error_description": description,
        "error_codes": [int(number) for number in _NUMBER.findall(description)],
        "trace_id": new_operation_id(),
        "correlation_id": new_operation_id(),
    }
    return Response(
        msgspec.json.encode(body),
        found.status,
        headers={**UNCACHED, **headers, **found.headers},
        media_type="application/json",
    )


def _as_oauth(error: Exception) -> OAuthError:
    same = as_arm_error(error)
    if same.status == 500:
        _log.error("a login broke", exc_info=error)
    code = "temporarily_unavailable" if same.status >= 500 else "invalid_request"
    return OAuthError(same.status, code, same.failure.message)


def _invalid(description: str) -> OAuthError:
    return OAuthError(400, "invalid_request", description)
