"""Serves the endpoints where Azure's clients discover this server and log in.

The client secret of a service principal is one of this server's tokens. The access token that the
client gets is the same token, so a revoked token is refused everywhere.
"""

import base64
import logging
from collections.abc import Awaitable, Callable, Mapping
from html import escape
from urllib.parse import parse_qsl, unquote_plus, urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairwarning.azure_api.app import error_response, refuse_version
from fairwarning.azure_api.catalogue import alias_document
from fairwarning.azure_api.errors import ArmError, as_arm_error
from fairwarning.operator_api.auth import Role
from fairwarning.operator_api.browser_protection import page_headers, refuse_foreign
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.dispatch import Dispatch, read_all

TENANT_ID = "66616972-7761-4e69-8e67-000000000000"
"""The id of the only tenant. All tenant names that a client uses mean this tenant."""
LIFETIME_S = 3_599
"""The lifetime of an access token, as on Azure. A client then asks for a new one."""
FORM_BYTES_MAX = 64 * 1024
_FIELDS_MAX = 50
_LAST_ARRAY_VERSION = "2019-05-01"
_UNCACHED = {"Cache-Control": "no-store", "Pragma": "no-cache"}
_log = logging.getLogger(__name__)
_Handler = Callable[[Request], Awaitable[Response]]


class OAuthError(Exception):
    """A refusal in the format of OAuth. az prints its description."""

    def __init__(self, status: int, code: str, description: str) -> None:
        super().__init__(description)
        self.status = status
        self.code = code


class Login:
    def __init__(self, control: Control, dispatch: Dispatch, *, needs_token: bool) -> None:
        self._control = control
        self._dispatch = dispatch
        self._needs_token = needs_token
        self._aliases = msgspec.json.encode(alias_document())

    def routes(self) -> list[Route]:
        get: dict[str, _Handler] = {
            "/metadata/endpoints": self._endpoints,
            "/aliases.json": self._image_aliases,
            "/adfs/.well-known/openid-configuration": self._adfs_configuration,
            "/{tenant}/v2.0/.well-known/openid-configuration": self._tenant_configuration,
            "/adfs/oauth2/authorize": self._login_page,
            "/{tenant}/oauth2/v2.0/authorize": self._login_page,
        }
        post: dict[str, _Handler] = {
            f"{oauth}/{name}": handler
            for oauth in ("/adfs/oauth2", "/{tenant}/oauth2/v2.0")
            for name, handler in (("token", self._token), ("devicecode", self._device_code))
        }
        return [
            *(Route(path, self._without_token(each, error_response)) for path, each in get.items()),
            Route("/tenants", self._tenants),
            *(
                Route(path, self._without_token(each, oauth_response), methods=["POST"])
                for path, each in post.items()
            ),
        ]

    def _base_url(self, request: Request) -> str:
        """Returns the configured public URL, or else the URL that the client used for this request.

        Raises ArmError if the request has no Host header.
        """
        host = request.headers.get("host", "")
        if not host:
            raise ArmError(
                400, "InvalidHostName", "The request names no host; send the header Host."
            )
        return self._control.public_url or f"{request.url.scheme}://{host}"

    def _without_token(
        self, handler: _Handler, refusal: Callable[[Exception], Response]
    ) -> _Handler:
        """Wraps a handler that needs no token.

        On loopback, where the server needs no tokens, requests with a foreign host or from a
        foreign web page are refused. `refusal` renders every exception.
        """

        async def answer(request: Request) -> Response:
            try:
                if not self._needs_token:
                    refuse_foreign(request.headers, request.url.scheme)
                return await handler(request)
            except Exception as error:
                return refusal(error)

        return answer

    async def _endpoints(self, request: Request) -> Response:
        version = api_version(request)
        found = endpoints(self._base_url(request))
        return _json([found] if version[:10] <= _LAST_ARRAY_VERSION else found)

    async def _image_aliases(self, _: Request) -> Response:
        return Response(self._aliases, media_type="application/json")

    async def _adfs_configuration(self, request: Request) -> Response:
        base = f"{self._base_url(request)}/adfs"
        return _json(openid_configuration(base, f"{base}/oauth2"))

    async def _tenant_configuration(self, request: Request) -> Response:
        base = f"{self._base_url(request)}/{request.path_params['tenant']}"
        return _json(openid_configuration(f"{base}/v2.0", f"{base}/oauth2/v2.0"))

    async def _tenants(self, request: Request) -> Response:
        try:
            await self._dispatch.identify(request, Role.VIEWER)
            api_version(request)
        except Exception as error:
            return error_response(error)
        tenant = {
            "id": f"/tenants/{TENANT_ID}",
            "tenantId": TENANT_ID,
            "displayName": "Fairwarning",
            "tenantCategory": "Home",
        }
        return _json({"value": [tenant]})

    async def _login_page(self, request: Request) -> Response:
        return Response(
            login_page(request.query_params),
            headers={**page_headers(form_action=OWN_FORMS), **_UNCACHED},
            media_type="text/html",
        )

    async def _device_code(self, request: Request) -> Response:
        path = request.url.path.removesuffix("devicecode")
        return _json(device_code(f"{self._base_url(request)}{path}authorize"), headers=_UNCACHED)

    async def _token(self, request: Request) -> Response:
        secret = read_client_secret(
            request.headers.get("content-type", ""),
            await read_all(request, FORM_BYTES_MAX),
            request.headers.get("authorization"),
        )
        token = await self._control.tokens.valid(secret)
        if token is None:
            raise OAuthError(
                401,
                "invalid_client",
                "AADSTS7000215: Invalid client secret provided. It must be a token of Fairwarning "
                "that is valid: wrong, revoked and expired ones are refused alike. Make one with "
                "`fairwarning azure-setup`, and log in with that.",
            )
        lasts_s = LIFETIME_S
        if token.expires_ms is not None:
            left_s = (token.expires_ms - self._control.clock.now()) // 1000
            lasts_s = max(1, min(LIFETIME_S, left_s))
        body = {
            "token_type": "Bearer",
            "expires_in": lasts_s,
            "ext_expires_in": lasts_s,
            "access_token": secret,
        }
        return _json(body, headers=_UNCACHED)


def api_version(request: Request) -> str:
    """Returns the request's api-version. Raises ArmError if it is missing or invalid."""
    query = {name.lower(): value for name, value in request.query_params.items()}
    version = query.get("api-version", "")
    refuse_version(version)
    return version


def endpoints(base: str) -> Mapping[str, object]:
    """Returns the endpoints of this cloud.

    Clients do not ask Microsoft about a login URL that ends in /adfs.
    """
    return {
        "name": "Fairwarning",
        "resourceManager": base,
        "authentication": {
            "loginEndpoint": f"{base}/adfs",
            "audiences": [f"{base}/"],
            "tenant": TENANT_ID,
            "identityProvider": "ADFS",
        },
        "suffixes": {},
        "vmImageAliasDoc": f"{base}/aliases.json",
    }


def openid_configuration(issuer: str, oauth: str) -> Mapping[str, object]:
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{oauth}/authorize",
        "token_endpoint": f"{oauth}/token",
        "device_authorization_endpoint": f"{oauth}/devicecode",
        "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
        "grant_types_supported": ["client_credentials"],
        "response_types_supported": ["token"],
    }


def read_client_secret(media_type: str, raw: bytes, authorization: str | None) -> str:
    """Reads the client's secret from a request for an access token. Raises OAuthError."""
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
    given = [*_secret_in_form(form), *_secret_in_header(authorization)]
    if len(given) > 1:
        raise _invalid("The secret is given in the form and in the header; send it once.")
    if not given:
        raise OAuthError(
            401,
            "invalid_client",
            "AADSTS7000218: The request must contain 'client_secret', a token of Fairwarning; "
            "certificates and assertions are not taken.",
        )
    return given[0]


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


def _secret_in_form(form: Mapping[str, str]) -> list[str]:
    return [form["client_secret"]] if form.get("client_secret") else []


def _secret_in_header(authorization: str | None) -> list[str]:
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
    return [unquote_plus(decoded.partition(":")[2])]


def oauth_response(error: Exception) -> Response:
    found = error if isinstance(error, OAuthError) else _as_oauth(error)
    headers = {"WWW-Authenticate": 'Basic realm="Fairwarning"'} if found.status == 401 else {}
    body = {"error": found.code, "error_description": str(found)}
    return _json(body, found.status, headers={**_UNCACHED, **headers})


def _as_oauth(error: Exception) -> OAuthError:
    same = as_arm_error(error)
    if same.status == 500:
        _log.error("a login broke", exc_info=error)
    code = "temporarily_unavailable" if same.status >= 500 else "invalid_request"
    return OAuthError(same.status, code, same.failure.message)


def _invalid(description: str) -> OAuthError:
    return OAuthError(400, "invalid_request", description)


def _json(body: object, status: int = 200, *, headers: Mapping[str, str] | None = None) -> Response:
    encoded = msgspec.json.encode(body)
    return Response(encoded, status, headers=headers, media_type="application/json")


WHAT_TO_DO = (
    "Fairwarning knows no people, only service principals. To log in as one, run: "
    "fairwarning azure-setup --run"
)
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
OWN_FORMS = "http://localhost:* http://127.0.0.1:* http://[::1]:*"
"""The targets of the login page's form. They are programs on the user's own computer."""
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Fairwarning</title></head><body>
<h1>Nobody logs in here</h1>
<p>Fairwarning knows no people, only service principals. In a shell, run:</p>
<pre>fairwarning azure-setup --run</pre>
{form}</body></html>
"""
_FORM = """<form method="post" action="{action}">
<input type="hidden" name="error" value="access_denied">
<input type="hidden" name="error_description" value="{description}">
<input type="hidden" name="state" value="{state}">
<button>End the login that waits</button>
</form>
"""


def device_code(authorize_url: str) -> Mapping[str, object]:
    """Returns a device code that expires in 5 seconds.

    Its message tells the user how to log in.
    """
    return {
        "device_code": "none",
        "user_code": "none",
        "verification_uri": authorize_url,
        "expires_in": 5,
        "interval": 1,
        "message": WHAT_TO_DO,
    }


def login_page(query: Mapping[str, str]) -> str:
    """Returns the page for people who try to log in. It says that only service principals can.

    If the client waits on the user's own computer, the page has a button that ends the login.
    """
    target = query.get("redirect_uri", "")
    form = ""
    if _is_loopback(target):
        form = _FORM.format(
            action=escape(target),
            description=escape(WHAT_TO_DO),
            state=escape(query.get("state", "")),
        )
    return _PAGE.format(form=form)


def _is_loopback(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme == "http" and parts.hostname in _LOOPBACK
    except ValueError:
        return False
