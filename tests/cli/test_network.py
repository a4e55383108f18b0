"""The commands `network rules`, `dnsmasq` and `proxy`: what they print, and what they refuse."""

import json
import os
import signal
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
from click.testing import CliRunner, Result

from fairwarning.cli.main import main
from fairwarning.testing import Server
from tests.support.processes import clean_environment, free_port, running

LAB = """\
server = "http://127.0.0.1:1"
[[network]]
name = "lab"
bridge = "br0"
listen = "127.0.0.1:{port}"
[[network.guests]]
instance = "web-0"
interface = "vnet0"
mac = "52:54:00:00:00:01"
{more}
"""


def network(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["network", *arguments])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "network.toml"
    path.write_text(LAB.format(port=80, more='addresses = ["10.0.0.10"]'))
    return path


@pytest.mark.parametrize(
    ("command", "key", "line"),
    [
        ("rules", "rules", "ip saddr { 10.0.0.10 } accept"),
        ("dnsmasq", "configuration", "dhcp-host=52:54:00:00:00:01,set:lab,10.0.0.10,web-0\n"),
    ],
)
def test_what_is_printed_needs_no_server_if_the_file_has_all_addresses(
    file: Path, command: str, key: str, line: str
) -> None:
    result = network(command, str(file), "--url", "http://127.0.0.1:1")
    assert result.exit_code == 0, result.output
    assert line in result.stdout
    as_json = network(command, str(file), "--url", "http://127.0.0.1:1", "--json")
    assert json.loads(as_json.stdout) == {key: result.stdout}


def test_addresses_that_the_file_lacks_are_those_of_the_fleet(
    tmp_path: Path, fairwarning: Server
) -> None:
    file = tmp_path / "network.toml"
    file.write_text(LAB.format(port=80, more=""))
    result = network("rules", str(file), "--url", fairwarning.control_url)
    assert result.exit_code == 1
    assert "guest web-0 of network lab has no addresses" in result.stderr


def test_one_network_of_several_can_be_chosen(file: Path) -> None:
    second = LAB.replace("lab", "other").replace("vnet0", "vnet1").split("\n", 1)[1]
    file.write_text(file.read_text() + second.format(port=80, more='addresses = ["10.0.0.11"]'))
    result = network("dnsmasq", str(file), "--network", "other")
    assert "10.0.0.11" in result.stdout
    assert "10.0.0.10" not in result.stdout
    result = network("rules", str(file), "--network", "third")
    assert (result.exit_code, "it has lab, other" in result.stderr) == (2, True)


def test_mistakes_of_the_file_are_told_with_their_lines(file: Path) -> None:
    file.write_text('[[network]]\nname = "a b"\nguests = [{ instance = "x", mac = "y" }]\n')
    for command in ("rules", "dnsmasq", "proxy"):
        result = network(command, str(file))
        assert result.exit_code == 1
        assert f"{file}:2: `name` must be" in result.stderr
        assert f"{file}:3: `mac` must be" in result.stderr
    result = network("rules", str(file.parent / "none"))
    assert (result.exit_code, "cannot be read: No such file" in result.stderr) == (2, True)


def test_the_proxy_needs_a_secret_and_addresses(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAIRWARNING_PROXY_SECRET", raising=False)
    result = network("proxy", str(file))
    assert (result.exit_code, "FAIRWARNING_PROXY_SECRET holds no secret" in result.stderr) == (
        2, True,
    )  # fmt: skip
    secret = file.parent / "secret"
    secret.write_text("\n")
    result = network("proxy", str(file), "--secret-file", str(secret))
    assert "holds no secret" in result.stderr
    secret.write_text("s3cret\n")
    file.write_text(LAB.format(port=80, more=""))
    result = network("proxy", str(file), "--secret-file", str(secret))
    assert (result.exit_code, "web-0 of network lab has no addresses" in result.stderr) == (1, True)


def test_the_proxy_reads_its_file_again_and_ends(file: Path) -> None:
    text = LAB.format(port=free_port(), more='addresses = ["127.0.0.1"]')
    file.write_text(text)
    command = [sys.executable, "-m", "fairwarning", "network", "proxy", str(file)]
    environment = {**clean_environment(), "FAIRWARNING_PROXY_SECRET": "s3cret"}
    with running(command, stdout=PIPE, stderr=PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("ready: serves lab; ")
        file.write_text("rubbish")
        os.kill(process.pid, signal.SIGHUP)
        assert "the old one stays in use" in process.stderr.readline()
        file.write_text(text)
        os.kill(process.pid, signal.SIGHUP)
        assert "was read again" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
