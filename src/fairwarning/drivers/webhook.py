"""The driver `webhook` sends each impact to a web service of the operator.

It sends the same JSON as the driver `command`. The service answers `do` with 200 if the impact is
over, or with 202 if it is under way. After 202, the driver sends `find` until the impact is over.
"""

import httpx
import msgspec
from msgspec import Struct

from fairwarning.core.driver_settings import DriverSettings, Setting, SettingKind
from fairwarning.drivers.orders import POLL_MS, Action, order_json, poll_until_over
from fairwarning.drivers.web_requests import Message, Reply, send
from fairwarning.engine.protocols import Alarm, Clock, DriverFailed, Found, Lease, Order

TIMEOUT_S = 30.0
"""How long one request may take: as long as the default lease of a node."""
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
    SETTINGS = SETTINGS

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def find(self, order: Order) -> Found:
        return (await self._ask(order, Action.FIND)).state

    async def do(self, order: Order, alarm: Alarm, lease: Lease) -> None:
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
        name = order.settings.get("secret_env", "")
        id = f"{order.key}-{order.attempt}-{action}"
        message = Message(url=order.settings["url"], id=id, body=order_json(order, action))
        reply = await send(message, secret_env=name, now=self._clock.now(), timeout_s=TIMEOUT_S)
        return _answer(reply)


def _answer(reply: Reply) -> Answer:
    if reply.status == httpx.codes.ACCEPTED:
        return Answer(state=Found.RUNNING)
    if reply.status != httpx.codes.OK:
        raise DriverFailed(f"the service answered {reply.status}")
    try:
        return msgspec.json.decode(reply.body, type=Answer)
    except (msgspec.DecodeError, UnicodeError):
        raise DriverFailed(
            'the service did not answer JSON like {"state": "done"}, where the state is one of '
            f"{', '.join(Found)}"
        ) from None
