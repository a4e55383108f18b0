"""`serve` listens to Azure's clients by itself, and never fails because of it."""

import json
import socket
import ssl
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from fairwarning.cli.serve import _next_to
from tests.cli.test_serve import ANY_PORT, PROGRAM, refused, serve_process
from tests.support.patience import HANG_S


def ready(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    found = json.loads(process.stdout.readline())
    assert isinstance(found, dict)
    return found


def cloud_at(url: str, authority: str) -> dict[str, Any]:
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}),
        urllib.request.HTTPSHandler(context=ssl.create_default_context(cadata=authority)),
    )
    with opener.open(f"{url}/metadata/endpoints?api-version=2022-09-01", timeout=HANG_S) as answer:
        found = json.load(answer)
    assert isinstance(found, dict)
    return found


def authority_at(control: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{control}/api/v1/azure", timeout=HANG_S) as answer:
        return str(json.load(answer)["ca"])


def test_azures_clients_are_listened_to_without_being_asked_for_and_trust_it_for_good(
    tmp_path: Path,
) -> None:
    seen = set()
    for _ in range(2):
        with serve_process("--store", "memory:", "--json", XDG_DATA_HOME=str(tmp_path)) as process:
            said = ready(process)
            authority = authority_at(said["control"])
            assert cloud_at(said["azure"], authority)["resourceManager"] == said["azure"]
            seen.add(authority)
    assert len(seen) == 1
    assert (tmp_path / "fairwarning/tls/authority.pem").exists()


@pytest.mark.parametrize(("control", "azure"), [
    (("127.0.0.1", 8170), ("127.0.0.1", 8171)),
    (("::1", 8170), ("::1", 8171)),
    (("127.0.0.1", 0), ("127.0.0.1", 0)),
    (("127.0.0.1", 65_535), ("127.0.0.1", 0)),
    (("0.0.0.0", 8170), None),
])  # fmt: skip
def test_the_port_is_the_one_after_that_of_the_control_plane(
    control: tuple[str, int], azure: tuple[str, int] | None
) -> None:
    assert _next_to(control) == azure


def test_people_are_told_how_to_set_az_up(tmp_path: Path) -> None:
    with serve_process("--store", "memory:", "--azure-folder", str(tmp_path)) as process:
        assert process.stdout is not None
        said = []
        while not (line := process.stdout.readline()).startswith("ready "):
            said.append(line)
    (told,) = [line for line in said if "az" in line.split()]
    assert told.strip().endswith("azure-setup")


@pytest.mark.parametrize("is_in_config", [True, False])
def test_it_can_be_left_out(tmp_path: Path, is_in_config: bool) -> None:
    (tmp_path / "fw.toml").write_text("no-azure = true\n")
    choice = ("--config", str(tmp_path / "fw.toml")) if is_in_config else ("--no-azure",)
    with serve_process(
        "--store", "memory:", "--json", *choice, XDG_DATA_HOME=str(tmp_path)
    ) as process:
        assert ready(process)["azure"] is None
    assert not (tmp_path / "fairwarning").exists()


def test_where_it_cannot_be_had_the_server_goes_on_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log = tmp_path / "log"
    command = [*PROGRAM, "serve", *ANY_PORT, "--store", "memory:", "--json"]
    command += ["--azure-folder", str(tmp_path / "file" / "tls")]
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        try:
            assert ready(process)["azure"] is None
        finally:
            process.kill()
    (line,) = [each for each in log.read_text().splitlines() if "Azure" in each]
    assert "--azure-folder" in line


@pytest.mark.parametrize(("arguments", "code", "words"), [
    (["--azure", "127.0.0.1:{taken}"], 1, "choose another address with --azure"),
    (["--azure", "192.0.2.1:8171"], 1, "--tls-certificate"),
    (["--azure", "127.0.0.1:0", "--azure-folder", "{file}/x"], 1, "--azure-folder"),
    (["--azure", "nonsense"], 2, "HOST:PORT"),
    (["--azure", "127.0.0.1:0", "--no-azure"], 2, "exclude"),
])  # fmt: skip
def test_what_was_asked_for_and_cannot_be_had_is_one_clear_line(
    tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    (tmp_path / "file").write_text("")
    ports = ["--metadata", "127.0.0.1:0", "--control", "127.0.0.1:0", "--store", "memory:"]
    with socket.create_server(("127.0.0.1", 0)) as one:
        names = {"taken": str(one.getsockname()[1]), "file": str(tmp_path / "file")}
        given = [each.format(**names) for each in arguments]
        done = refused("serve", *ports, "--azure-folder", str(tmp_path / "tls"), *given)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    if code == 1:
        assert len(done.stderr.splitlines()) == 1
