"""`fairwarning fleet import libvirt` on the test driver of libvirt."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fairwarning.drivers import plugins
from fairwarning.fleet_file.read import read_toml
from tests.cli.test_examples import examples


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fairwarning", "fleet", "import", "libvirt", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_fleet_file_is_printed_and_what_is_not_known_is_said() -> None:
    done = run("--uri", "test:///default")
    assert done.returncode == 0, done.stderr
    (resource,) = read_toml(done.stdout, plugins.catalogue()).resources
    assert resource.place.driver_settings == {"uri": "test:///default"}
    assert "not known: availability sets" in done.stderr


@pytest.mark.parametrize("example", [each for each in examples() if "fleet import" in each])
def test_every_example_works(example: str) -> None:
    words = example.replace("qemu:///system", "test:///default").split()[3:]
    assert run(*words).returncode == 0


def test_as_json() -> None:
    body = json.loads(run("--uri", "test:///default", "--json").stdout)
    assert body["instances"] == 1
    assert body["fleet"].startswith("driver = ")


def test_a_hypervisor_that_is_away_is_said_in_one_line(tmp_path: Path) -> None:
    done = run("--uri", f"test+unix:///default?socket={tmp_path}/none")
    assert done.returncode == 1
    assert done.stderr.startswith("fairwarning: libvirt: ")
    assert len(done.stderr.splitlines()) == 1
