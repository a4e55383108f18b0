"""The client and the agent install without the server's dependencies, and work there."""

import shutil
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import click
import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
NEEDED = ("click", "h11")
CONFIG = """
state = "{folder}/state.json"
[[rule]]
name = "all"
  [[rule.scheduled]]
  run = ["true"]
"""


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of an environment that has the light wheel, h11 and click."""
    folder = tmp_path_factory.mktemp("light")
    (wheel,) = WheelBuilder(str(ROOT / "packages" / "client")).build(
        directory=str(folder), versions=["standard"]
    )
    home = folder / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    install = ["install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]
    python = str(home / "bin" / "python")
    subprocess.run([sys.executable, "-m", "pip", "--python", python, *install, wheel], check=True)
    (site,) = home.glob("lib/python*/site-packages")
    for name in NEEDED:
        _copy(name, site)
    return home / "bin"


def _copy(name: str, site: Path) -> None:
    """What is installed here already, so that nobody has to be asked for it."""
    found = distribution(name)
    for file in found.files or ():
        if file.parts[0] != ".." and file.suffix != ".pyc":
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(found.locate_file(file)), site / file)


def said(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_asks_for_nothing_but_h11_and_click(light: Path) -> None:
    script = "import importlib.metadata as m; print(*m.requires('fairwarning-client'))"
    names = [each for each in said(light / "python", "-c", script).split() if each[0].isalpha()]
    wanted = {each.split(">")[0] for each in names if ">=" in each}
    assert wanted == {*NEEDED, "apprise"}
    assert "extra" in names, "apprise must be optional"


def test_every_module_of_client_and_agent_can_be_imported(light: Path) -> None:
    script = (
        "import pkgutil, importlib, fairwarning.client, fairwarning.agent\n"
        "for package in (fairwarning.client, fairwarning.agent):\n"
        "    for each in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        importlib.import_module(each.name)\n"
        "from fairwarning.client import ScheduledEvents\n"
        "print(ScheduledEvents('http://127.0.0.1:9').url)\n"
    )
    assert said(light / "python", "-c", script) == "http://127.0.0.1:9\n"


def test_the_agents_program_runs(light: Path, tmp_path: Path) -> None:
    assert "--config" in said(light / "fairwarning-agent", "--help")
    config = tmp_path / "agent.toml"
    config.write_text(CONFIG.format(folder=tmp_path))
    said(light / "fairwarning-agent", "check-config", config)


def test_all_its_commands_are_there(light: Path) -> None:
    """They are imported when they are used, so one may be missing without a word."""
    from fairwarning.agent.cli.main import agent

    names = agent.list_commands(click.Context(agent))
    assert len(names) > 2
    for name in names:
        assert "Usage:" in said(light / "fairwarning-agent", name, "--help")
