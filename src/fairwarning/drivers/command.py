"""The driver `command` runs a program of the operator for each impact.

The program gets `do` or `find` as its last argument and the order as JSON on its standard
input. Exit code 0 after `do` means that the impact is over. The program runs in real time even if
the server's clock is virtual. Then its timeouts are real, and the virtual clock stands still.
"""

import asyncio
import os
import tempfile
from collections.abc import Mapping
from typing import IO

from fairwarning.common.durations import parse_duration_ms
from fairwarning.common.process_group import end
from fairwarning.core.driver_settings import DriverSettings, Setting, SettingKind, split_command
from fairwarning.drivers.orders import Action, found_in, handle_of, order_json, poll_until_over
from fairwarning.engine.protocols import Alarm, DriverFailed, Found, Lease, Order

FIND_TIMEOUT_S = 60.0
"""How long the program may take for `find`. The setting `timeout` limits `do`."""
GRACE_S = 5.0
"""How long the program may take to end after SIGTERM, before it gets SIGKILL."""
OUTPUT_BYTES_MAX = 4_096
"""Only this many bytes at the end of the output are read: the answer or the last error."""
OWN_PREFIX = "FAIRWARNING_"
SETTINGS = DriverSettings(
    driver="command",
    settings=(
        Setting(name="run", kind=SettingKind.COMMAND_LINE, is_required=True),
        Setting(name="timeout", kind=SettingKind.DURATION),
    ),
)


class CommandDriver:
    async def find(self, order: Order) -> Found:
        return found_in(await _run(order, Action.FIND, FIND_TIMEOUT_S))

    async def carry_out(self, order: Order, alarm: Alarm, lease: Lease) -> None:
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
    words = _command(order)
    # Files and not pipes, because a background process of the program would keep a pipe open.
    with (
        tempfile.TemporaryFile() as order_file,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        order_file.write(order_json(order, action))
        order_file.seek(0)
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                action,
                stdin=order_file,
                stdout=out,
                stderr=err,
                env=_environment(order, os.environ),
                start_new_session=True,
            )
        except OSError as error:
            raise DriverFailed(f"cannot run {words[0]!r}: {error.strerror}") from None
        code = await _wait(process, timeout_s)
        if code != 0:
            raise DriverFailed(_complaint(action, code, _tail(err)))
        return _tail(out)


def _command(order: Order) -> list[str]:
    problem = SETTINGS.problem(order.settings)
    words = split_command(order.settings.get("run", ""))
    if problem is not None or words is None:
        raise DriverFailed(f"{problem}; change the fleet")
    return words


def _timeout_s(order: Order) -> float | None:
    timeout_ms = parse_duration_ms(order.settings.get("timeout", ""))
    return None if timeout_ms is None else timeout_ms / 1000


def _environment(order: Order, inherited: Mapping[str, str]) -> dict[str, str]:
    """Returns the server's environment, with the order and without settings of the server."""
    kept = {name: value for name, value in inherited.items() if not name.startswith(OWN_PREFIX)}
    return kept | {
        "FAIRWARNING_KEY": order.key,
        "FAIRWARNING_ATTEMPT": str(order.attempt),
        "FAIRWARNING_LEASE_UNTIL": str(order.lease_until_ms // 1000),
        "FAIRWARNING_TYPE": order.type,
        "FAIRWARNING_OPERATION": order.operation or "",
        "FAIRWARNING_INSTANCES": " ".join(handle_of(each) for each in order.instances),
    }


async def _wait(process: asyncio.subprocess.Process, timeout_s: float | None) -> int:
    """Waits for the program and returns its exit code. Raises DriverFailed at the timeout."""
    try:
        async with asyncio.timeout(timeout_s):
            return await process.wait()
    except TimeoutError:
        raise DriverFailed(f"the program did not end within {timeout_s:g} s") from None
    finally:
        if process.returncode is None:
            await end(process, GRACE_S)


def _tail(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - OUTPUT_BYTES_MAX))
    return file.read().decode(errors="replace")


def _complaint(action: Action, code: int, said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
    return f"the program {how} on {action}" + (f": {lines[-1]}" if lines else "")
