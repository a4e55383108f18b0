"""Writes an order as JSON for programs and web services, reads the answers, and waits for them."""

import json
from collections.abc import Awaitable, Callable
from enum import StrEnum

from fairwarning.core.instants import format_rfc3339
from fairwarning.core.model import Instance
from fairwarning.engine.protocols import Alarm, DriverFailed, Found, Order

ANSWER_CHARS_MAX = 200
"""An error message quotes at most this many characters of a bad answer."""


class Action(StrEnum):
    DO = "do"
    FIND = "find"


def order_json(order: Order, action: str, **more: object) -> bytes:
    value = {
        "action": action,
        **more,
        "key": order.key,
        "attempt": order.attempt,
        "node": order.node,
        "leaseUntil": format_rfc3339(order.lease_until_ms),
        "type": order.type,
        "operation": order.operation,
        "scope": order.scope_id,
        "instances": [_instance(each) for each in order.instances],
        "durationSeconds": order.duration_s,
        "started": format_rfc3339(order.started_ms),
    }
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def handle_of(instance: Instance) -> str:
    """Returns the operator's own name for the instance."""
    return instance.handle or instance.name


def found_in(answer: str) -> Found:
    """Reads the answer to `find`. Raises DriverFailed if the answer is not a value of `Found`."""
    try:
        return Found(answer.strip())
    except ValueError:
        said = answer.strip()[:ANSWER_CHARS_MAX]
        raise DriverFailed(
            f"the driver answered {said!r} to find; it must be one of {', '.join(Found)}"
        ) from None


def _instance(instance: Instance) -> dict[str, object]:
    return {
        "name": instance.name,
        "handle": handle_of(instance),
        "updateDomain": instance.update_domain,
        "faultDomain": instance.fault_domain,
        "addresses": list(instance.addresses),
        "tags": dict(instance.tags),
        "priority": instance.priority,
        "eviction": instance.eviction,
        "power": instance.power,
    }


POLL_MS = 2_000
"""The pause between two calls of `ask`, which may start a program each time."""
FAILURES_MAX = 5
"""After this many failed calls of `ask` in a row, the attempt has failed."""


async def poll_until_over(ask: Callable[[], Awaitable[Found]], alarm: Alarm) -> Found:
    """Calls `ask` until the state is not RUNNING, and returns that state. Raises DriverFailed."""
    failures = 0
    while True:
        try:
            found = await ask()
        except DriverFailed:
            failures += 1
            if failures >= FAILURES_MAX:
                raise
        else:
            failures = 0
            if found is not Found.RUNNING:
                return found
        await alarm.pause(POLL_MS)
