"""The alert rules name metrics and labels that a real server has, and the docs explain each alert.

`./test alerts` has promtool check that they fire.
"""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml  # type: ignore[import-untyped]

from fairwarning.core import transitions
from fairwarning.core.model import Phase
from tests.support.processes import serving

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "fairwarning.rules.yml"
TESTS = RULES.with_name("fairwarning.rules.test.yml")


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of all series of a server with a worker."""
    store = f"sqlite:///{tmp_path_factory.mktemp('alerts') / 'fw.db'}"
    with serving("--store", store, "--workers", "1", "--no-azure") as server:
        text = httpx.get(f"{server.control}/metrics", trust_env=False, timeout=60).text
    found = set()
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        found.add(f"{name}_bucket" if kind == "histogram" else name)
    return found


def test_each_alert_is_about_metrics_that_a_server_has(metrics: set[str]) -> None:
    for alert in alerts():
        named = set(re.findall(r"\bfairwarning_\w+", alert["expr"]))
        assert named <= metrics, alert["alert"]
        assert named or "up{" in alert["expr"]


def test_the_labels_in_the_rules_exist() -> None:
    text = RULES.read_text()
    kinds = {each for found in re.findall(r'kind=~?"([^"]+)"', text) for each in found.split("|")}
    assert kinds
    assert all(hasattr(transitions, kind) for kind in kinds), kinds
    phases = set(re.findall(r'phase="([^"]+)"', text))
    assert phases
    assert phases <= {phase.value for phase in Phase}


def test_each_alert_is_played_and_explained() -> None:
    played = {
        each["alertname"]
        for test in yaml.safe_load(TESTS.read_text())["tests"]
        for each in test["alert_rule_test"]
        if each["exp_alerts"]
    }
    names = [alert["alert"] for alert in alerts()]
    assert sorted(played) == sorted(names)
    explained = re.findall(
        r"^\| `(Fairwarning\w+)` \|", (ROOT / "docs/monitor.md").read_text(), re.M
    )
    assert sorted(explained) == sorted(names)
