"""The example script of the documentation, with a stand-in for virsh that notes its arguments."""

import asyncio
import os
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from fairwarning.core.model import EventType, OperationKind
from fairwarning.drivers.command import CommandDriver
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.protocols import DriverFailed, Found, Order
from tests.drivers.orders import HeldLease, order

PAGE = Path(__file__).parents[2] / "docs/drivers.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (script,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    write(tmp_path / "impact", script)
    write(tmp_path / "virsh", f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("STATE", str(tmp_path / "state"))
    return tmp_path


def write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def impact(
    folder: Path, type: EventType, duration_s: int = 0, operation: OperationKind | None = None
) -> Order:
    asked = order({"run": str(folder / "impact")}, operation=operation)
    return replace(asked, type=type, duration_s=duration_s)


async def carry_out(asked: Order) -> None:
    await CommandDriver(SystemClock()).do(asked, SystemClock().alarm(), HeldLease())


@pytest.mark.parametrize(
    ("type", "operation", "words"),
    [
        (EventType.FREEZE, None, ["suspend", "resume"]),
        (EventType.REBOOT, None, ["reboot"]),
        (EventType.REBOOT, OperationKind.RESTART, ["reboot"]),
        (EventType.REDEPLOY, None, ["destroy", "start"]),
        (EventType.PREEMPT, None, ["destroy"]),
        (EventType.TERMINATE, OperationKind.DELETE, ["destroy"]),
        (EventType.POWER, OperationKind.START, ["start"]),
        (EventType.POWER, OperationKind.STOP, ["destroy"]),
        (EventType.POWER, OperationKind.DEALLOCATE, ["destroy"]),
    ],
)
async def test_it_does_each_type_once(
    folder: Path, type: EventType, operation: OperationKind | None, words: list[str]
) -> None:
    asked = impact(folder, type, operation=operation)
    driver = CommandDriver(SystemClock())
    assert await driver.find(asked) is Found.UNKNOWN
    await carry_out(asked)
    assert await driver.find(asked) is Found.DONE
    await carry_out(asked)
    lines = [
        line
        for line in (folder / "asked").read_text().splitlines()
        if not line.startswith("domstate")
    ]
    assert lines == [f"{word} {domain}" for domain in ("vm-17", "web-1") for word in words]


async def test_a_lower_attempt_than_one_it_has_seen_does_nothing(folder: Path) -> None:
    """As when a node is paused, loses its lease, and goes on after another has asked."""
    first = impact(folder, EventType.REBOOT)
    assert await CommandDriver(SystemClock()).find(replace(first, attempt=2)) is Found.UNKNOWN
    with pytest.raises(DriverFailed, match="attempt 2 was seen already"):
        await carry_out(first)
    assert not (folder / "asked").exists()
    await carry_out(replace(first, attempt=2))
    with pytest.raises(DriverFailed, match="attempt 2 was seen already"):
        await carry_out(first)
    assert (folder / "asked").read_text().splitlines() == ["reboot vm-17", "reboot web-1"]


async def test_what_is_under_way_is_found_and_not_begun_twice(folder: Path) -> None:
    os.mkfifo(folder / "asked")
    with os.fdopen(os.open(folder / "asked", os.O_RDWR), "rb") as told:
        asked = impact(folder, EventType.FREEZE, duration_s=600)
        work = asyncio.create_task(carry_out(asked))
        assert await asyncio.to_thread(told.readline) == b"suspend vm-17\n"
        assert await CommandDriver(SystemClock()).find(asked) is Found.RUNNING
        with pytest.raises(DriverFailed, match="another attempt is under way"):
            await carry_out(asked)
        work.cancel()
        assert await asyncio.to_thread(told.readline) == b"resume vm-17\n"
        with pytest.raises(asyncio.CancelledError):
            await work


async def test_it_says_that_it_cannot_reimage(folder: Path) -> None:
    asked = impact(folder, EventType.REBOOT, operation=OperationKind.REIMAGE)
    with pytest.raises(DriverFailed, match="cannot reimage"):
        await carry_out(asked)
    assert await CommandDriver(SystemClock()).find(asked) is Found.FAILED


async def test_a_frozen_domain_is_resumed_when_the_script_is_ended(folder: Path) -> None:
    os.mkfifo(folder / "asked")
    with os.fdopen(os.open(folder / "asked", os.O_RDWR), "rb") as told:
        work = asyncio.create_task(carry_out(impact(folder, EventType.FREEZE, duration_s=600)))
        assert await asyncio.to_thread(told.readline) == b"suspend vm-17\n"
        work.cancel()
        assert await asyncio.to_thread(told.readline) == b"resume vm-17\n"
        with pytest.raises(asyncio.CancelledError):
            await work
    assert await CommandDriver(SystemClock()).find(impact(folder, EventType.FREEZE)) is Found.FAILED
