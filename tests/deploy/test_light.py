"""The light package installs alone, without the server's dependencies, and all of it works."""

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
OF_AN_EXTRA = "fairwarning.agent.logind"
"""It needs dbus-fast, and is imported only if that is there."""
CONFIG = """
state = "{folder}/state.json"
[[rule]]
name = "all"
  [[rule.scheduled]]
  run = ["true"]
"""


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns `bin` of a fresh environment that has the light wheel, h11 and click, and no more."""
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
    """Copies the installed distribution, so that no package index is needed."""
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
    assert wanted == {*NEEDED, "apprise", "dbus-fast"}
    assert names.count("extra") == 2, "apprise and dbus-fast must be optional"


def test_every_module_of_it_can_be_imported(light: Path) -> None:
    script = (
        "import pkgutil, importlib, fairwarning\n"
        "for each in pkgutil.walk_packages(fairwarning.__path__, 'fairwarning.'):\n"
        f"    if each.name != {OF_AN_EXTRA!r}: importlib.import_module(each.name)\n"
        "from fairwarning.client import ScheduledEvents\n"
        "print(ScheduledEvents('http://127.0.0.1:9').url)\n"
    )
    assert said(light / "python", "-c", script) == "http://127.0.0.1:9\n"


def test_every_command_runs(light: Path, tmp_path: Path) -> None:
    """Commands are imported when they are used, so a forgotten one would show only then."""
    from fairwarning.agent.cli.main import agent

    config = tmp_path / "agent.toml"
    config.write_text(CONFIG.format(folder=tmp_path))
    as_web_0 = ("--name", "web-0", "--config", str(config))
    arguments = {
        "check-config": (str(config),),
        "explain": ("--type", "reboot", *as_web_0),
        "test": ("reboot", "--yes", *as_web_0),
    }
    status = ("status", "--config", str(config))
    assert {*arguments, "status"} == set(agent.list_commands(click.Context(agent)))
    program = light / "fairwarning-agent"
    assert "--config" in said(program, "--help")
    for name, given in arguments.items():
        assert said(program, name, *given), name
    done = subprocess.run([program, *status], capture_output=True, text=True, check=False)
    assert "no agent uses" in done.stderr


@pytest.mark.parametrize("removed", ["fairwarning", "fairwarning-client"])
def test_removing_one_package_leaves_the_other_whole(tmp_path: Path, removed: str) -> None:
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python")]
    for folder in (ROOT, ROOT / "packages" / "client"):
        (wheel,) = WheelBuilder(str(folder)).build(directory=str(tmp_path), versions=["standard"])
        install = ["install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]
        subprocess.run([*pip, *install, wheel], check=True)
    (site,) = home.glob("lib/python*/site-packages")
    for name in NEEDED:
        _copy(name, site)
    subprocess.run([*pip, "uninstall", "--quiet", "--yes", removed], check=True)
    code = "import fairwarning.client, fairwarning.agent.runner, fairwarning.common.durations"
    if removed == "fairwarning-client":
        code += ", fairwarning.core.decide, fairwarning.cli.main"
        _copy("msgspec", site)
    said(home / "bin" / "python", "-c", code)
