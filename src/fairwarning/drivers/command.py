"""The driver `command` runs a program of the operator for each impact.

The program gets `do` or `find` as its last argument and the order as JSON on its standard
input. Exit code 0 after `do` means that the impact is over. The program runs in real time even if
the server's clock is virtual. Then its timeouts are real, and the virtual clock stands still.
"""

from fairwarning.common.durations import parse_duration_ms
from fairwarning.core.driver_settings import DriverSettings, Setting, SettingKind, split_command
from fairwarning.drivers.orders import Action, found_in, handle_of, order_json, poll_until_over
from fairwarning.drivers.programs import Ended, run_program
from fairwarning.engine.protocols import Alarm, Clock, DriverFailed, Found, Lease, Order

FIND_TIMEOUT_S = 60.0
"""How long the program may take for `find`. The setting `timeout` limits `do`."""
SETTINGS = DriverSettings(
    driver="command",
    settings=(
        Setting(name="run", kind=SettingKind.COMMAND_LINE, is_required=True),
        Setting(name="timeout", kind=SettingKind.DURATION),
    ),
)


class CommandDriver:
    SETTINGS = SETTINGS

    def __init__(self, clock: Clock) -> None:
        """The clock is not used: a program runs in real time."""

    async def find(self, order: Order) -> Found:
        return found_in(await _run(order, Action.FIND, FIND_TIMEOUT_S))

    async def do(self, order: Order, alarm: Alarm, lease: Lease) -> None:
        if order.may_be_under_way:
            # The program may still run from before a crash of the server. Do not start it twice.
            found = await poll_until_over(lambda: self.find(order), alarm)
            if found is Found.DONE:
                return
            # The wait may have been long, so the lease may be lost by now.
            await lease.confirm(alarm)
        await _run(order, Action.DO, _timeout_s(order))


async def _run(order: Order, action: Action, timeout_s: float | None) -> str:
    """Returns the end of the program's output. Raises DriverFailed if it fails or is too slow."""
    words = (*_command(order), action)
    ended = await run_program(words, order_json(order, action), environment(order), timeout_s)
    if ended.code != 0:
        raise DriverFailed(_complaint(action, ended))
    return ended.out


def _command(order: Order) -> list[str]:
    problem = SETTINGS.problem(order.settings)
    words = split_command(order.settings.get("run", ""))
    if problem is not None or words is None:
        raise DriverFailed(f"{problem}; change the fleet")
    return words


def _timeout_s(order: Order) -> float | None:
    timeout_ms = parse_duration_ms(order.settings.get("timeout", ""))
    return None if timeout_ms is None else timeout_ms / 1000


def environment(order: Order) -> dict[str, str]:
    """Returns the variables that tell a program of the order."""
    return {
        "FAIRWARNING_KEY": order.key,
        "FAIRWARNING_ATTEMPT": str(order.attempt),
        "FAIRWARNING_LEASE_UNTIL": str(order.lease_until_ms // 1000),
        "FAIRWARNING_TYPE": order.type,
        "FAIRWARNING_OPERATION": order.operation or "",
        "FAIRWARNING_INSTANCES": " ".join(handle_of(each) for each in order.instances),
    }


def _complaint(action: Action, ended: Ended) -> str:
    if ended.code is None:
        return f"the program {ended.how}"
    lines = [line.strip() for line in ended.err.splitlines() if line.strip()]
    return f"the program {ended.how} on {action}" + (f": {lines[-1]}" if lines else "")
