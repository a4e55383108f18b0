"""The page of recipes shows the files that are shipped, and each recipe has its check."""

import os
import re
from pathlib import Path

import pytest

from fairwarning.agent.config.model import Run
from fairwarning.agent.config.reader import read_file

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "agent-recipes.md"
FILES = sorted((ROOT / "examples" / "agent").iterdir())
CONFIGS = [each for each in FILES if each.suffix == ".toml"]
INSTALLED = Path("/usr/local/sbin")


def test_the_page_shows_exactly_the_files() -> None:
    link = r"^\[([\w.-]+)\]\(\.\./examples/agent/\1\):"
    block = rf"{link}\n\n```\w*\n(.*?)^```$"
    shown = dict(re.findall(block, PAGE.read_text(), re.MULTILINE | re.DOTALL))
    assert shown == {each.name: each.read_text() for each in FILES}


@pytest.mark.parametrize("config", CONFIGS, ids=lambda each: each.name)
def test_a_recipe_is_a_config_whose_scripts_are_shipped(config: Path) -> None:
    for rule in read_file(config).rules:
        for action in rule.scheduled:
            for each in (action.settings, action.undo):
                if isinstance(each, Run) and Path(each.command[0]).parent == INSTALLED:
                    script = config.with_name(Path(each.command[0]).name)
                    assert os.access(script, os.X_OK), f"{script} is missing"


@pytest.mark.parametrize("config", CONFIGS, ids=lambda each: each.name)
def test_a_recipe_is_run_by_the_suite(config: Path) -> None:
    checks = [each.read_text() for each in (ROOT / "tools" / "agent" / "recipes").glob("*.py")]
    assert any(f'"{config.name}"' in each for each in checks)
