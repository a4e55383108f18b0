"""What would fail only when an event has come is said when the config is checked."""

import os
import socket
import stat
from pathlib import Path

import pytest

from fairwarning.agent import host_shutdown
from fairwarning.agent.actions import notify
from fairwarning.agent.cli import check_config
from fairwarning.agent.cli.check_config import missing
from fairwarning.agent.config.reader import read_config
from tests.agent.actions.patroni_stand_in import patroni

HEAD = '[[rule]]\nname = "drain"\n\n[[rule.scheduled]]\n'


def warnings(folder: Path, action: str, top: str = "") -> list[str]:
    return missing(read_config(f'state = "{folder}/state.json"\n{top}{HEAD}{action}\n'))


def program(folder: Path, text: str) -> Path:
    made = folder / "kubectl"
    made.write_text(f"#!/bin/sh\n{text}\n")
    made.chmod(made.stat().st_mode | stat.S_IXUSR)
    return made


def test_what_is_there_is_no_warning(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        assert warnings(tmp_path, 'run = ["true", "{event.id}"]\nundo = "true"') == []
        assert warnings(tmp_path, f'haproxy = {{ socket = "{path}", server = "web/web-0" }}') == []
    assert warnings(tmp_path, 'run = ["{me}"]') == []


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ('run = ["/no/such/program"]', "there is no program /no/such/program"),
        ('run = "true"\nundo = ["no-such-undo"]', "undo: there is no program no-such-undo"),
        ('haproxy = { socket = "/no/socket", server = "web/a" }', "/no/socket"),
        ('haproxy = { socket = "/etc/passwd", server = "web/a" }', "is no socket"),
        (
            'nginx = { file = "/no/file.conf", upstream = "web", server = "a:80" }',
            "there is no file /no/file.conf",
        ),
        ('kubernetes = { kubectl = "/no/kubectl" }', "there is no program /no/kubectl"),
        ('kubernetes = { kubectl = "true", kubeconfig = "/no/kc" }', "the kubeconfig /no/kc"),
    ],
)
def test_what_is_not_there_is_named(tmp_path: Path, action: str, why: str) -> None:
    found = warnings(tmp_path, action)
    assert any(why in each for each in found), found
    assert all(each.startswith("rule 'drain': ") for each in found)


def test_apprise_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    action = 'notify = { url = "json://127.0.0.1" }'
    assert warnings(tmp_path, action) == []
    monkeypatch.setattr(notify, "is_available", lambda: False)
    (found,) = warnings(tmp_path, action)
    assert "pip install" in found


def test_a_hold_and_a_folder_of_peers_that_are_not_there(tmp_path: Path) -> None:
    top = '[approve]\nhold = { command = ["no-such-hold"] }\npeers = { directory = "/no/peers" }\n'
    found = warnings(tmp_path, 'run = "true"', top)
    assert any("no-such-hold" in each for each in found)
    assert any("/no/peers" in each for each in found)


def test_a_state_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    (found,) = warnings(tmp_path / "file", 'run = "true"')
    assert "is no folder" in found
    # Root may write everywhere, so the answer is made up.
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert any("cannot be written" in each for each in warnings(tmp_path, 'run = ["{me}"]'))


def test_the_rights_of_kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(text: str) -> list[str]:
        kubectl = program(tmp_path, text)
        return warnings(tmp_path, f'kubernetes = {{ kubectl = "{kubectl}" }}')

    assert found("echo yes") == []
    (only,) = found('case "$*" in *eviction*) echo no; exit 1;; *) echo yes;; esac')
    assert "create pods" in only
    (only,) = found("echo connection refused >&2; exit 1")
    assert "cannot ask the cluster: connection refused" in only
    monkeypatch.setattr(check_config, "ASK_S", 0.1)
    (only,) = found("exec sleep 60")
    assert "did not answer" in only


def test_a_shutdown_of_the_host_that_would_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = "host_shutdown = { delay = true }\n"
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path}/none")
    (found,) = warnings(tmp_path, 'run = "true"', top)
    assert found.startswith("host_shutdown: the system's bus cannot be reached: No such file")
    monkeypatch.setattr(host_shutdown, "is_available", lambda: False)
    (found,) = warnings(tmp_path, 'run = "true"', top)
    assert "pip install 'fairwarning-client[logind]'" in found
    assert warnings(tmp_path, 'run = "true"') == []


def test_patroni_that_would_not_switch_over(tmp_path: Path) -> None:
    def found(more: str = "") -> list[str]:
        return warnings(tmp_path, f'patroni = {{ url = "{api.url}"{more} }}')

    with patroni() as api:
        assert found() == []
        assert found(', candidate = "b"') == []
        api.credentials = "fw:right"
        assert found(', user = "fw", password = "right"') == []
        (only,) = found(', user = "fw", password = "wrong"')
        assert "refuses the credentials" in only
        api.credentials = ""
        (only,) = found(', candidate = "c"')
        assert "the cluster has no member c, only a, b" in only
        api.is_paused = True
        (only,) = found()
        assert "is paused" in only
        api.is_paused = False
        del api.states["b"]
        (only,) = found()
        assert "no member but a" in only
        assert api.leader == "a"
    (only,) = found()
    assert "cannot be reached: Connection refused; is Patroni running here?" in only


def test_a_unit_that_systemd_does_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: "/bin/systemctl")
    monkeypatch.setattr(check_config, "_asked", lambda _: "not-found\n")
    (found,) = warnings(tmp_path, 'systemd = { stop = ["worker.service"] }')
    assert "no unit worker.service" in found


def test_what_this_user_may_not_write_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, file = tmp_path / "socket", tmp_path / "web.conf"
    file.touch()
    (tmp_path / "state.json").touch()
    monkeypatch.setattr(check_config, "_program", lambda _: iter(()))
    # Root may write everywhere, so the answers are made up.
    forbidden: set[tuple[str, int]] = set()
    monkeypatch.setattr(os, "access", lambda at, mode: (str(at), mode) not in forbidden)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        haproxy = f'haproxy = {{ socket = "{path}", server = "web/a" }}'
        assert warnings(tmp_path, haproxy) == []
        forbidden.add((str(path), os.W_OK))
        (found,) = warnings(tmp_path, haproxy)
        assert f"the socket {path} cannot be written" in found
    nginx = f'nginx = {{ file = "{file}", upstream = "web", server = "a:80" }}'
    peers = f'[approve]\npeers = {{ directory = "{tmp_path}" }}\n'
    assert warnings(tmp_path, nginx, peers) == []
    forbidden.add((str(tmp_path), os.W_OK))
    folder_of_peers, folder_of_file = warnings(tmp_path, nginx, peers)
    assert f"the folder {tmp_path} of the peers cannot be written" in folder_of_peers
    assert f"the folder of {file} cannot be written" in folder_of_file
    forbidden.add((f"{tmp_path}/state.json", os.R_OK))
    assert "this user cannot read it" in warnings(tmp_path, 'run = ["{me}"]')[0]


@pytest.mark.parametrize(
    "action",
    [
        'haproxy = { socket = "127.0.0.1:9999", server = "web/a" }',
        'haproxy = { socket = "/run/{me}.sock", server = "web/a" }',
        'nginx = { file = "/etc/{me}.conf", upstream = "w", server = "a", reload = ["true"] }',
        'http = { url = "http://127.0.0.1:9/" }',
    ],
)
def test_what_only_the_event_decides_is_no_warning(tmp_path: Path, action: str) -> None:
    assert warnings(tmp_path, action) == []


def test_systemd_that_is_not_there_and_a_unit_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    action = 'systemd = { stop = ["worker.service", "{me}.service"] }'
    monkeypatch.setattr("shutil.which", lambda _: None)
    (found,) = warnings(tmp_path, action)
    assert "no program systemctl" in found
    asked: list[list[str]] = []

    def answer(command: list[str]) -> str:
        asked.append(command)
        return "loaded\n"

    monkeypatch.setattr("shutil.which", lambda _: "/bin/systemctl")
    monkeypatch.setattr(check_config, "_asked", answer)
    assert warnings(tmp_path, action) == []
    assert [each[-1] for each in asked] == ["worker.service"]
    assert not any("--user" in each for each in asked)


def test_a_program_that_cannot_be_run_says_why(tmp_path: Path) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text("no program")
    kubectl.chmod(0o755)
    (found,) = warnings(tmp_path, f'kubernetes = {{ kubectl = "{kubectl}" }}')
    assert "cannot ask the cluster: [Errno 8] Exec format error" in found
