"""This module makes the target of a check from shell commands of the driver's author."""

import asyncio
from collections.abc import Mapping

from fairwarning.core.model import EventType
from fairwarning.drivers.check_target import CheckTarget

COMMAND_TIMEOUT_S = 60.0  # It only ends a hang.
OUTPUT_CHARS_MAX = 200  # Enough to recognise what a command printed.


class CommandFailed(Exception):
    """A command that the author gave for the check failed."""


def shell_target(
    *,
    settings: Mapping[str, str],
    handles: tuple[str, ...],
    type: EventType,
    duration_s: int,
    count: str,
    away: str,
    back: str,
) -> CheckTarget:
    async def counted(handle: str) -> int:
        text = await _run(count, handle)
        try:
            return int(text)
        except ValueError:
            said = text.strip()[:OUTPUT_CHARS_MAX]
            raise CommandFailed(f"{count!r} printed {said!r} and not a number") from None

    async def take_away() -> None:
        await _run(away)

    async def bring_back() -> None:
        await _run(back)

    return CheckTarget(
        settings=settings,
        handles=handles,
        type=type,
        duration_s=duration_s,
        count=counted if count else None,
        take_away=take_away if away else None,
        bring_back=bring_back if back else None,
    )


async def _run(command: str, *arguments: str) -> str:
    """Runs a command in a shell, with the arguments as $1 and so on. Returns what it printed."""
    process = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        command,
        "sh",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(COMMAND_TIMEOUT_S):
            printed, _ = await process.communicate()
    except TimeoutError:
        raise CommandFailed(f"{command!r} did not end within {COMMAND_TIMEOUT_S:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise CommandFailed(f"{command!r} ended with code {process.returncode}")
    return printed.decode(errors="replace")
