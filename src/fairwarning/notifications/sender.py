"""Sends one message to one target, and reports the result without secrets."""

import asyncio
import importlib
import logging
from collections.abc import Callable
from typing import Any, Protocol

import httpx

from fairwarning.core.webhook_signatures import signed_headers
from fairwarning.engine.protocols import Clock
from fairwarning.notifications.messages import CONTENT_TYPE
from fairwarning.notifications.model import Message, Outcome, Target, TargetKind

WEBHOOK_TIMEOUT_S = 10.0  # Less than a lease, so that another node does not send too.
CHAT_TIMEOUT_S = 30.0  # Mail servers are slow; it is still less than a lease.
GONE = 410  # The receiver says with this status that it is gone for ever.
_NO_PACKAGE = "chat and mail need another package; run pip install 'fairwarning[chat]'"
_NO_SERVICE = "Apprise knows no such service or the url lacks something; see Apprise's list of urls"
# These libraries write whole addresses into the log, and with them tokens and passwords.
_TALKATIVE = ("httpx", "httpcore", "apprise", "requests", "urllib3")


class Sender(Protocol):
    async def problem(self, target: Target) -> str | None:
        """Return why the target can never work and how to fix it, or None if it can work."""

    async def send(self, target: Target, message: Message) -> Outcome:
        """Send the message. This never raises, and takes at most `CHAT_TIMEOUT_S`."""

    async def close(self) -> None: ...


class NetworkSender:
    """The real sender. It sends to webhooks with httpx, and to chat and mail with Apprise."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._client: httpx.AsyncClient | None = None
        for name in _TALKATIVE:
            logging.getLogger(name).setLevel(logging.CRITICAL)

    async def problem(self, target: Target) -> str | None:
        if target.kind is TargetKind.WEBHOOK:
            return None
        try:
            return None if await asyncio.to_thread(_chat, target.url) else _NO_SERVICE
        except ImportError:
            return _NO_PACKAGE

    async def send(self, target: Target, message: Message) -> Outcome:
        try:
            if target.kind is TargetKind.WEBHOOK:
                return await self._post(target, message)
            return await _tell(target, message)
        except Exception as error:
            # The error's text and traceback are not logged: both may contain the address.
            return Outcome(error=f"could not be sent ({type(error).__name__})")

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _post(self, target: Target, message: Message) -> Outcome:
        body = message.body.encode()
        headers = {
            "content-type": CONTENT_TYPE,
            **message.headers,
            **signed_headers(target.secret, message.id, self._clock.now(), body),
        }
        try:
            # The library's own limit is for each step; this one is for the whole request.
            async with asyncio.timeout(WEBHOOK_TIMEOUT_S):
                status = await self._status(target.url, headers, body)
        except (TimeoutError, httpx.TimeoutException):
            return Outcome(error=f"no answer within {WEBHOOK_TIMEOUT_S:g} s")
        except httpx.HTTPError as error:
            return Outcome(error=f"no connection ({type(error).__name__})")
        if httpx.codes.is_success(status):
            return Outcome()
        return Outcome(error=f"answered {status}", is_final=status == GONE)

    async def _status(self, url: str, headers: dict[str, str], body: bytes) -> int:
        """Post the body and return the status. The response is not read: it could be endless."""
        if self._client is None:
            self._client = httpx.AsyncClient(timeout=WEBHOOK_TIMEOUT_S, follow_redirects=False)
        async with self._client.stream("POST", url, headers=headers, content=body) as answer:
            return answer.status_code


async def _tell(target: Target, message: Message) -> Outcome:
    try:
        async with asyncio.timeout(CHAT_TIMEOUT_S):
            return await asyncio.to_thread(_notify, target.url, message)
    except TimeoutError:
        return Outcome(error=f"not sent within {CHAT_TIMEOUT_S:g} s")


def _notify(url: str, message: Message) -> Outcome:
    try:
        notify = _chat(url)
    except ImportError:
        return Outcome(error=_NO_PACKAGE)
    if notify is None:
        return Outcome(error=_NO_SERVICE)
    if notify(body=message.text, title=message.title):
        return Outcome()
    return Outcome(error="the service did not take it")


def _chat(url: str) -> Callable[..., bool | None] | None:
    """Return Apprise's function for this address, or None if it knows no such service. Apprise is
    imported here, in a thread, because the import takes a second.
    """
    apprise: Any = importlib.import_module("apprise")
    service = apprise.Apprise()
    return service.notify if service.add(url) else None
