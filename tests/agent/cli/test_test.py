"""`agent test` runs real actions, so it keeps out of the way of an agent that is at work."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairwarning.agent.cli.test import test as command
from fairwarning.agent.config.model import Phase
from fairwarning.agent.config.reader import read_file
from fairwarning.agent.records import Memory, Record
from fairwarning.agent.state_file import StateFile
from tests.agent.values import event


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


@pytest.mark.parametrize(("phase", "code"), [(Phase.STARTED, 1), (Phase.FINISHED, 0)])
def test_it_is_refused_while_an_event_is_under_way_though_its_agent_was_stopped(
    config: Path, phase: Phase, code: int
) -> None:
    """A stopped agent leaves its drain in place; what is over is only still to be undone."""
    (rule,) = read_file(config).rules
    state = StateFile(config.parent / "agent.json")
    state.open()
    record = Record(event=event(), rule=rule, phase=phase, is_mine=True)
    state.save(Memory().with_record(record))
    state.close()
    (config.parent / "drained").touch()
    done = CliRunner().invoke(command, ["reboot", "--config", str(config), "--yes"])
    assert done.exit_code == code, done.output
    assert (config.parent / "drained").exists() == (code == 1)


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_what_does_not_work_is_told_and_gives_1(config: Path, options: list[str]) -> None:
    config.write_text(config.read_text().replace('"touch"', '"false"'))
    done = CliRunner().invoke(command, ["reboot", "--config", str(config), "--yes", *options])
    assert done.exit_code == 1
    if options:
        told = json.loads(done.stdout)
        assert (told["ok"], len(told["problems"])) == (False, 1)
    else:
        assert "false ended with code 1" in done.stderr
