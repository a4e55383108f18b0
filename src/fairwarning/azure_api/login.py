"""Serves the endpoints where Azure's clients discover this server and log in.

The client secret of a service principal is one of this server's tokens. The access token that the
client gets is the same token, so a revoked token is refused everywhere. An id token, which is
signed, only says who logged in. It gives access to nothing.
"""

from collections.abc import Awaitable, Callable, Mapping
from html import escape
from urllib.parse import urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fairwarning.azure_api.app import error_response, refuse_version
from fairwarning.azure_api.catalogue import alias_document
from fairwarning.azure_api.discovery import (
    OLDEST_VERSION,
    TENANT_ID,
    endpoints,
    openid_configuration,
)
from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.oauth import UNCACHED, Grant, OAuthError, oauth_response, read_grant
from fairwarning.azure_api.signing_key import SigningKey
from fairwarning.core.instants import Instant
from fairwarning.operator_api.auth import Role, Token
from fairwarning.operator_api.browser_protection import page_headers, refuse_foreign
from fairwarning.operator_api.context import Control
from fairwarning.operator_api.dispatch import Dispatch, read_all

LIFETIME_S = 3_599
"""The lifetime of an access token, as on Azure. A client then asks for a new one."""
FORM_BYTES_MAX = 64 * 1024
_OAUTH = ("/{tenant}/oauth2", "/{tenant}/oauth2/v2.0")
"""The paths of both versions of the login. The tenant `adfs` has only the first version."""
_GRAPH_LISTS = frozenset({"users", "servicePrincipals", "groups", "applications"})
_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
_Handler = Callable[[Request], Awaitable[Response]]


class Login:
    def __init__(self, control: Control, dispatch: Dispatch, *, needs_token: bool) -> None:
        self._control = control
        self._dispatch = dispatch
        self._needs_token = needs_token
        self._key = SigningKey(control.store)
        self._aliases = msgspec.json.encode(alias_document())

    def routes(self) -> list[Route]:
        get: dict[str, _Handler] = {
            "/metadata/endpoints": self._endpoints,
            "/aliases.json": self._image_aliases,
            "/{tenant}/.well-known/openid-configuration": self._openid_configuration,
            "/{tenant}/v2.0/.well-known/openid-configuration": self._openid_configuration,
            "/{tenant}/discovery/keys": self._keys,
            **{f"{oauth}/authorize": self._login_page for oauth in _OAUTH},
        }
        post: dict[str, _Handler] = {
            f"{oauth}/{name}": handler
            for oauth in _OAUTH
            for name, handler in (("token", self._token), ("devicecode", self._device_code))
        }
        return [
            *(Route(path, self._without_token(each, error_response)) for path, each in get.items()),
            Route("/tenants", self._tenants),
            Route("/v1.0/{rest:path}", _graph, methods=_METHODS),
            *(
                Route(path, self._without_token(each, oauth_response), methods=_METHODS)
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
        version = api_version(request, OLDEST_VERSION)
        return _json(endpoints(self._base_url(request), version))

    async def _image_aliases(self, _: Request) -> Response:
        return Response(self._aliases, media_type="application/json")

    async def _openid_configuration(self, request: Request) -> Response:
        tenant = f"{self._base_url(request)}/{request.path_params['tenant']}"
        version = "/v2.0" if request.url.path.split("/")[2] == "v2.0" else ""
        keys = f"{tenant}/discovery/keys"
        return _json(openid_configuration(f"{tenant}{version}", f"{tenant}/oauth2{version}", keys))

    async def _keys(self, _: Request) -> Response:
        return _json({"keys": [await self._key.published()]})

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
            headers={**page_headers(form_action=OWN_FORMS), **UNCACHED},
            media_type="text/html",
        )

    async def _device_code(self, request: Request) -> Response:
        _refuse_method(request)
        path = request.url.path.removesuffix("devicecode")
        return _json(device_code(f"{self._base_url(request)}{path}authorize"), headers=UNCACHED)

    async def _token(self, request: Request) -> Response:
        _refuse_method(request)
        grant = read_grant(
            request.headers.get("content-type", ""),
            await read_all(request, FORM_BYTES_MAX),
            request.headers.get("authorization"),
        )
        token = await self._control.tokens.valid(grant.secret)
        if token is None:
            raise OAuthError(
                401,
                "invalid_client",
                "AADSTS7000215: Invalid client secret provided. It must be a token of Fairwarning "
                "that is valid: wrong, revoked and expired ones are refused alike. Make one with "
                "`fairwarning azure-setup`, and log in with that.",
            )
        now_s = self._control.clock.now() // 1000
        lasts_s = _lifetime_s(token, self._control.clock.now())
        body = token_json(grant, now_s, lasts_s)
        if "openid" in grant.scopes:
            issuer = f"{self._base_url(request)}{issuer_path(request.url.path)}"
            body["id_token"] = await self._key.sign(
                id_claims(token, issuer, grant.client_id, now_s, lasts_s)
            )
        return _json(body, headers=UNCACHED)


async def _graph(request: Request) -> Response:
    """Answers requests to Microsoft Graph: lists are empty, and all else is not found."""
    if request.method == "GET" and request.path_params["rest"] in _GRAPH_LISTS:
        return _json({"value": []})
    return error_response(
        ArmError(
            404,
            "Request_ResourceNotFound",
            "Fairwarning knows no users, groups or applications, only tokens.",
        )
    )


def _refuse_method(request: Request) -> None:
    if request.method != "POST":
        raise OAuthError(
            405,
            "invalid_request",
            "AADSTS900561: The endpoint only accepts POST requests. Received a "
            f"{request.method} request.",
            {"Allow": "POST"},
        )


def _lifetime_s(token: Token, now: Instant) -> int:
    if token.expires_ms is None:
        return LIFETIME_S
    return max(1, min(LIFETIME_S, (token.expires_ms - now) // 1000))


def issuer_path(token_path: str) -> str:
    """Returns the path of the issuer whose endpoint for tokens is at this path."""
    _, tenant, *rest = token_path.split("/")
    return f"/{tenant}/v2.0" if "v2.0" in rest else f"/{tenant}"


def token_json(grant: Grant, now_s: int, lasts_s: int) -> dict[str, object]:
    """Returns the answer to a login.

    A client that names a resource speaks the first version, in which all values are texts.
    """
    times = {"expires_in": lasts_s, "ext_expires_in": lasts_s}
    body: dict[str, object] = {"token_type": "Bearer", **times, "access_token": grant.secret}
    if grant.resource:
        times |= {"expires_on": now_s + lasts_s, "not_before": now_s}
        body |= {name: str(value) for name, value in times.items()}
        body["resource"] = grant.resource
    return body


def id_claims(
    token: Token, issuer: str, client_id: str, now_s: int, lasts_s: int
) -> Mapping[str, object]:
    return {
        "iss": issuer,
        "aud": client_id,
        "sub": token.id,
        "name": token.name,
        "tid": TENANT_ID,
        "iat": now_s,
        "nbf": now_s,
        "exp": now_s + lasts_s,
        "ver": "2.0" if issuer.endswith("/v2.0") else "1.0",
    }


def api_version(request: Request, *known: str) -> str:
    """Returns the request's api-version, which is one of `known` or a date.

    Raises ArmError if it is missing or invalid.
    """
    query = {name.lower(): value for name, value in request.query_params.items()}
    version = query.get("api-version", "")
    if version not in known:
        refuse_version(version)
    return version


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
