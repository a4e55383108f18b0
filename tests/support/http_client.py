"""An HTTP client for a server on loopback, for tests that are not about TLS."""

import httpx

from tests.support.patience import HANG_S


def http_client(base_url: str = "") -> httpx.AsyncClient:
    """Returns a client without certificates, which are slow to read, and without proxies."""
    return httpx.AsyncClient(base_url=base_url, timeout=HANG_S, verify=False, trust_env=False)
