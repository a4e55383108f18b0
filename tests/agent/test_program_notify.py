"""What systemd is told, and how often it wants to hear of us."""

import os
import socket
import uuid
from pathlib import Path

import pytest

from fairwarning.agent.program import notify, watchdog_s


@pytest.mark.parametrize("is_abstract", [True, False])
def test_systemd_hears_it_at_either_kind_of_address(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_abstract: bool
) -> None:
    name = f"fairwarning-{uuid.uuid4()}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(f"\0{name}" if is_abstract else name)
        systemd.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}" if is_abstract else name)
        notify(READY="1", STATUS="watching")
        assert systemd.recv(100) == b"READY=1\nSTATUS=watching"


@pytest.mark.parametrize(
    ("pid", "microseconds", "every_s"),
    [
        ("", "60000000", 30.0),
        ("ours", "60000000", 30.0),
        ("1", "60000000", None),
        ("", "0", None),
        ("", "soon", None),
        ("", "", None),
    ],
)
def test_the_watchdog_is_fed_twice_in_its_time_and_only_our_own(
    monkeypatch: pytest.MonkeyPatch, pid: str, microseconds: str, every_s: float | None
) -> None:
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    monkeypatch.setenv("WATCHDOG_USEC", microseconds)
    if pid:
        monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if pid == "ours" else pid)
    assert watchdog_s() == every_s
