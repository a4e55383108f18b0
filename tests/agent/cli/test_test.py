"""`agent test` runs real actions, so it keeps out of the way of an agent that is at work."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairwarning.agent.cli.test import test as command
from fairwarning.agent.state_file import StateFile


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "agent.toml"
    path.write_text(
        f'name = "web-0"\nendpoint = "http://127.0.0.1:9"\nstate = "{tmp_path}/agent.json"\n'
        f'[[rule]]\nname = "all"\n[[rule.scheduled]]\nrun = ["touch", "{tmp_path}/drained"]\n'
        f'undo = ["rm", "-f", "{tmp_path}/drained"]\n'
    )
    return path


@pytest.fixture
def running(config: Path) -> Iterator[StateFile]:
    state = StateFile(config.parent / "agent.json")
    state.open()
    yield state
    state.close()


def test_it_plays_where_no_agent_is_at_work(config: Path) -> None:
    done = CliRunner().invoke(command, ["reboot", "--config", str(config), "--yes"])
    assert done.exit_code == 0, done.output
    assert not (config.parent / "drained").exists()


@pytest.mark.usefixtures("running")
def test_it_is_refused_while_an_agent_runs(config: Path) -> None:
    (config.parent / "drained").touch()
    done = CliRunner().invoke(command, ["reboot", "--config", str(config), "--yes"])
    assert done.exit_code != 0
    assert (config.parent / "drained").exists()
