"""This module posts JSON to a web service of the operator, signed if there is a secret.

The driver `webhook` and hooks use it.
"""

import asyncio
import logging
import os
from dataclasses import dataclass

import httpx

from fairwarning.core.instants import Instant
from fairwarning.core.webhook_signatures import BadSecret, signed_headers
from fairwarning.engine.protocols import DriverFailed

ANSWER_BYTES_MAX = 16_384  # A state and a reason need far less.
# httpx logs whole URLs, which may hold secrets.
for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    url: str
    id: str
    """A text that differs for each order, attempt and try. It is signed with the body."""
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int
    body: bytes


async def send(message: Message, *, secret_env: str, now: Instant, timeout_s: float) -> Reply:
    """Posts the body. Raises DriverFailed if there is no answer in time, or one that is too long,
    or if the environment variable `secret_env` has no usable secret. An empty name means unsigned.
    """
    headers = {"content-type": "application/json", **_signature(message, secret_env, now)}
    try:
        async with (
            asyncio.timeout(timeout_s),
            httpx.AsyncClient(timeout=timeout_s, follow_redirects=False) as client,
            client.stream("POST", message.url, headers=headers, content=message.body) as response,
        ):
            return Reply(status=response.status_code, body=await _body(response))
    except (TimeoutError, httpx.HTTPError, httpx.InvalidURL) as error:
        # The text of the error may contain the URL, and the URL may contain a password.
        raise DriverFailed(f"the service gave no answer ({type(error).__name__})") from None


def _signature(message: Message, secret_env: str, now: Instant) -> dict[str, str]:
    if not secret_env:
        return {}
    secret = os.environ.get(secret_env)
    if secret is None:
        raise DriverFailed(f"the environment variable {secret_env} is not set; set it and restart")
    try:
        return dict(signed_headers(secret, message.id, now, message.body))
    except BadSecret as bad:
        raise DriverFailed(f"{bad}; change the environment variable {secret_env}") from None


async def _body(response: httpx.Response) -> bytes:
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > ANSWER_BYTES_MAX:
            raise DriverFailed(f"the service answered more than {ANSWER_BYTES_MAX} bytes")
    return body
