"""Describes this server to Azure's clients: as a cloud, and as an OpenID provider. Pure."""

from collections.abc import Mapping

ALGORITHM = "RS256"  # OpenID requires this algorithm of every provider.
TENANT_ID = "66616972-7761-4e69-8e67-000000000000"
"""The id of the only tenant. All tenant names that a client uses mean this tenant."""
OLDEST_VERSION = "1.0"
"""An api-version of the cloud's description that is not a date. Azure PowerShell asks for it."""
_LAST_SHORT_VERSION = "2015-01-01"
_LAST_ARRAY_VERSION = "2019-05-01"


def endpoints(base: str, version: str) -> object:
    """Returns the description of this cloud that clients expect of this api-version.

    Clients do not ask Microsoft about a login URL that ends in /adfs. There is no graph and no
    gallery here, but Azure PowerShell and az refuse a cloud that does not name them.
    """
    if version == OLDEST_VERSION or version <= _LAST_SHORT_VERSION:
        return {
            "galleryEndpoint": f"{base}/",
            "graphEndpoint": f"{base}/",
            "portalEndpoint": f"{base}/",
            "authentication": _authentication(base),
        }
    cloud = {
        "name": "Fairwarning",
        "resourceManager": base,
        "portal": f"{base}/",
        "gallery": f"{base}/",
        "graph": f"{base}/",
        "graphAudience": f"{base}/",
        "microsoftGraphResourceId": f"{base}/",
        "authentication": {
            **_authentication(base),
            "tenant": TENANT_ID,
            "identityProvider": "ADFS",
        },
        "suffixes": {},
        "vmImageAliasDoc": f"{base}/aliases.json",
    }
    return [cloud] if version[:10] <= _LAST_ARRAY_VERSION else cloud


def _authentication(base: str) -> Mapping[str, object]:
    return {"loginEndpoint": f"{base}/adfs", "audiences": [f"{base}/"]}


def openid_configuration(issuer: str, oauth: str, keys: str) -> Mapping[str, object]:
    """Returns the discovery document of OpenID.

    `oauth` is the URL above the endpoints for tokens, `keys` that of the published keys.
    """
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{oauth}/authorize",
        "token_endpoint": f"{oauth}/token",
        "device_authorization_endpoint": f"{oauth}/devicecode",
        "jwks_uri": keys,
        "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
        "grant_types_supported": ["client_credentials"],
        "response_types_supported": ["token"],
        "response_modes_supported": ["form_post"],
        "scopes_supported": ["openid"],
        "subject_types_supported": ["pairwise"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
        "claims_supported": ["aud", "exp", "iat", "iss", "name", "nbf", "sub", "tid", "ver"],
    }
