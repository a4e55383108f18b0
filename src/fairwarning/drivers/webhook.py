"""The driver `webhook` sends each impact to a web service of the operator.

It sends the same JSON as the driver `command`. The service answers `do` with 200 if the impact is
over, or with 202 if it is under way. After 202, the driver sends `find` until the impact is over.
"""

import asyncio
import logging
import os

import httpx
import msgspec
from msgspec import Struct

from fairwarning.core.driver_settings import DriverSettings, Setting, SettingKind
from fairwarning.core.webhook_signatures import BadSecret, signed_headers
from fairwarning.drivers.orders import POLL_MS, Action, order_json, poll_until_over
from fairwarning.engine.protocols import Alarm, Clock, DriverFailed, Found, Lease, Order

TIMEOUT_S = 30.0
"""How long one request may take: as long as the default lease of a node."""
ANSWER_BYTES_MAX = 16_384  # A state and a reason need far less.
REASON_CHARS_MAX = 400
"""Only this many characters of the service's reason for a failure are kept."""
SETTINGS = DriverSettings(
    driver="webhook",
    settings=(
        Setting(name="url", kind=SettingKind.URL, is_required=True),
        Setting(name="secret_env", kind=SettingKind.VARIABLE),
    ),
)


class Answer(Struct, frozen=True, kw_only=True):
    state: Found
    reason: str = ""
    """Why the impact failed. It may be empty."""


class WebhookDriver:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # httpx logs whole URLs, which may hold secrets.
        for name in ("httpx", "httpcore"):
            logging.getLogger(name).setLevel(logging.CRITICAL)

    async def find(self, order: Order) -> Found:
        return (await self._ask(order, Action.FIND)).state

    async def carry_out(self, order: Order, alarm: Alarm, lease: Lease) -> None:
        found = Found.UNKNOWN
        if order.may_be_under_way:
            found = await poll_until_over(lambda: self.find(order), alarm)
        if found is not Found.DONE:
            # The wait may have been long, so the lease may be lost by now.
            await lease.confirm(alarm)
            await self._do(order, alarm)

    async def _do(self, order: Order, alarm: Alarm) -> None:
        last = await self._ask(order, Action.DO)

        async def ask() -> Found:
            nonlocal last
            last = await self._ask(order, Action.FIND)
            return last.state

        if last.state is Found.RUNNING:
            await alarm.pause(POLL_MS)
            await poll_until_over(ask, alarm)
        if last.state is not Found.DONE:
            why = last.reason[:REASON_CHARS_MAX] or "it gave no reason"
            raise DriverFailed(f"the service says {last.state}: {why}")

    async def _ask(self, order: Order, action: Action) -> Answer:
        problem = SETTINGS.problem(order.settings)
        if problem is not None:
            raise DriverFailed(f"{problem}; change the fleet")
        body = order_json(order, action)
        headers = {"content-type": "application/json", **self._signature(order, action, body)}
        try:
            async with (
                asyncio.timeout(TIMEOUT_S),
                httpx.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False) as client,
                client.stream(
                    "POST", order.settings["url"], headers=headers, content=body
                ) as response,
            ):
                return await _answer(response)
        except (TimeoutError, httpx.HTTPError) as error:
            # The text of the error may contain the URL, and the URL may contain a password.
            raise DriverFailed(f"the service gave no answer ({type(error).__name__})") from None

    def _signature(self, order: Order, action: Action, body: bytes) -> dict[str, str]:
        name = order.settings.get("secret_env")
        if name is None:
            return {}
        secret = os.environ.get(name)
        if secret is None:
            raise DriverFailed(f"the environment variable {name} is not set; set it and restart")
        id = f"{order.key}-{order.attempt}-{action}"
        try:
            return dict(signed_headers(secret, id, self._clock.now(), body))
        except BadSecret as bad:
            raise DriverFailed(f"{bad}; change the environment variable {name}") from None


async def _answer(response: httpx.Response) -> Answer:
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > ANSWER_BYTES_MAX:
            raise DriverFailed(f"the service answered more than {ANSWER_BYTES_MAX} bytes")
    if response.status_code == httpx.codes.ACCEPTED:
        return Answer(state=Found.RUNNING)
    if response.status_code != httpx.codes.OK:
        raise DriverFailed(f"the service answered {response.status_code}")
    try:
        return msgspec.json.decode(body, type=Answer)
    except (msgspec.DecodeError, UnicodeError):
        raise DriverFailed(
            'the service did not answer JSON like {"state": "done"}, where the state is one of '
            f"{', '.join(Found)}"
        ) from None
