"""HTTP to a server on loopback, for tests that are not about TLS."""

import httpx

from tests.support.patience import HANG_S


def http_client(base_url: str = "") -> httpx.AsyncClient:
    """Reads no certificates, which would take longer than most tests, and no proxies."""
    return httpx.AsyncClient(base_url=base_url, timeout=HANG_S, verify=False, trust_env=False)
