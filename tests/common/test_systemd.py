"""What systemd is told and gives, and how often it wants to hear of us."""

import os
import socket
import uuid
from pathlib import Path

import pytest

from fairwarning.common.systemd import (
    leave_socket,
    notify,
    taken_sockets,
    watchdog_s,
    withdraw_socket,
)


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


def test_a_socket_is_left_under_a_name_that_systemd_allows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        systemd.bind(str(tmp_path / "notify"))
        systemd.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        leave_socket("metadata ::1 80 0", listener)
        message, (fd,), _, _ = socket.recv_fds(systemd, 100, 1)
        assert message == b"FDSTORE=1\nFDNAME=metadata%20%3A%3A1%2080%200"
        with socket.socket(fileno=fd) as copy:
            assert copy.getsockname() == listener.getsockname()
        withdraw_socket("metadata ::1 80 0")
        assert systemd.recv(100) == b"FDSTOREREMOVE=1\nFDNAME=metadata%20%3A%3A1%2080%200"


def test_sockets_are_taken_once_and_only_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for pid, found in ((os.getpid(), {"metadata ::1 80 0": 3, "control": 4}), (1, {})):
        monkeypatch.setenv("LISTEN_PID", str(pid))
        monkeypatch.setenv("LISTEN_FDS", "2")
        monkeypatch.setenv("LISTEN_FDNAMES", "metadata%20%3A%3A1%2080%200:control")
        assert taken_sockets() == found
        assert taken_sockets() == {}
