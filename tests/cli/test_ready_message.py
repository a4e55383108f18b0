"""What `serve` says when it is ready: only what is true of this server."""

from typing import Any

import pytest

from fairwarning.cli import ready_message
from fairwarning.cli.ready_message import Started, shown_store, tell_ready

POLL = "/vm/web-0/metadata/scheduledevents?api-version=2020-07-01"


def told(
    capsys: pytest.CaptureFixture[str],
    poll: str | None = POLL,
    store_url: str = "sqlite:///fleet.db",
    **changes: Any,
) -> tuple[str, str]:
    node: dict[str, Any] = {
        "metadata_urls": ["http://127.0.0.1:8080"],
        "control_url": "http://127.0.0.1:8081",
        "azure_url": "",
        "azure_trouble": "",
        "has_starter_fleet": False,
        "clock_speed": None,
        **changes,
    }
    tell_ready(Started(**node, poll=poll), store_url, as_json=False)
    said = capsys.readouterr()
    return said.out, said.err


def test_a_fleet_without_machines_says_how_to_declare_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, err = told(capsys, poll=None)
    assert "The fleet is empty" in out
    assert "fleet apply FILE" in out
    assert "curl" not in out
    assert err == ""


def test_a_machine_is_asked_for_on_loopback_only(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = told(capsys)
    assert f"curl -H Metadata:true 'http://127.0.0.1:8080{POLL}'" in out
    assert "schedule Reboot web-0" in out
    assert "curl" in told(capsys, metadata_urls=["http://[::1]:8080"])[0]
    out, _ = told(capsys, metadata_urls=["http://10.0.0.1"])
    assert "curl" not in out
    assert "can be asked on a loopback address" not in out
    out, _ = told(capsys, metadata_urls=["http://10.0.0.1"], has_starter_fleet=True)
    assert "can be asked on a loopback address" in out


def test_a_virtual_clock_is_told_with_its_speed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "clock advance" not in told(capsys)[0]
    out, err = told(capsys, clock_speed=0.0, store_url="memory:")
    assert "The clock is virtual and stands still" in out
    assert err == ""
    out, err = told(capsys, clock_speed=60.0)
    assert "runs 60 times as fast as the real one" in out
    assert err == f"{ready_message._KEPT_VIRTUAL}\n"


def test_what_is_wrong_with_azures_door_is_said_apart(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = told(capsys, azure_trouble="port 8443 is taken")
    assert err == "Azure's clients are not listened to: port 8443 is taken\n"
    assert "azure-setup" not in out
    assert "azure-setup" in told(capsys, azure_url="https://127.0.0.1:8443")[0]
    assert "azure-setup" not in told(capsys, azure_url="https://fw.example:8443")[0]


def test_tokens_are_spoken_of_where_they_are_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "asks for tokens" not in told(capsys)[0]
    out, _ = told(capsys, control_url="https://10.0.0.1:8081")
    assert "asks for tokens" in out
    assert "FAIRWARNING_URL=https://10.0.0.1:8081 " in out


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///a/b.db", "a/b.db"),
        ("memory:", "memory:"),
        ("postgresql://me:secret@db/fleet?sslmode=require", "postgresql://db/fleet"),
        ("postgres://db/fleet", "postgresql://db/fleet"),
    ],
)
def test_a_store_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert shown_store(url) == shown


def test_a_node_with_some_roles_speaks_of_them_only(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = told(capsys, metadata_urls=[], has_control=False)
    assert "has not the role metadata" in out
    assert "portal" not in out
    assert out.endswith("ready control http://127.0.0.1:8081\n")
