"""A new config while the agent runs: at once, or when what it asks for is known."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairwarning.agent.config.model import Action, Config, Rule, Run
from fairwarning.agent.program import Reloader
from fairwarning.agent.whoami import needs_more, pause_s
from fairwarning.client import polling
from fairwarning.testing import Server
from tests.agent.rig import Rig
from tests.agent.values import action, config

PLAIN = config(Rule(name="plain"))
TAGGED = config(Rule(name="tagged", tags={"role": "front"}))
FLEET = {"test": True, "vm": [{"name": "web-0", "tags": {"role": "front"}}]}


def a_reloader(rig: Rig, *configs: Config) -> Reloader:
    following: Iterator[Config] = iter(configs)
    return Reloader(rig.runner, rig.service, lambda: next(following))


@pytest.mark.fairwarning(fleet=FLEET)
async def test_the_old_config_stays_until_the_service_has_said_what_the_new_one_needs(
    fairwarning: Server, tmp_path: Path
) -> None:
    rig = Rig(fairwarning, "web-0", PLAIN, tmp_path)
    await rig.start()
    fairwarning.fault("status", "web-0", on="instance", status=503, count=3)
    a_reloader(rig, TAGGED).reload()
    assert rig.runner.config is PLAIN
    await rig.until(lambda: rig.runner.config is TAGGED)
    assert (rig.runner.me.name, rig.runner.me.tags) == ("web-0", {"role": "front"})
    await rig.stop()


@pytest.mark.fairwarning(fleet=FLEET)
async def test_of_two_reloads_the_last_counts(fairwarning: Server, tmp_path: Path) -> None:
    rig = Rig(fairwarning, "web-0", PLAIN, tmp_path)
    await rig.start()
    other = config(Rule(name="other"))
    reloader = a_reloader(rig, TAGGED, other)
    reloader.reload()
    await asyncio.sleep(0)
    reloader.reload()
    # Questions are answered one after the other, so that of the first reload would have been.
    await rig.service.instance()
    assert rig.runner.config is other
    await rig.stop()


@pytest.mark.parametrize(
    "change",
    [{"endpoint": "http://x"}, {"name": "web-9"}, {"state": "/x"}, {"listen": ("127.0.0.1", 1)}],
    ids=lambda change: next(iter(change)),
)
async def test_what_only_a_restart_can_change_is_told(
    fairwarning: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture, change: dict[str, Any]
) -> None:
    rig = Rig(fairwarning, "web-0", PLAIN, tmp_path)
    await rig.start()
    a_reloader(rig, replace(PLAIN, **change)).reload()
    await rig.stop()
    (name,) = change
    assert f"a change of {name} needs a restart" in caplog.messages


async def test_a_file_that_cannot_be_read_leaves_the_old_config(
    fairwarning: Server, tmp_path: Path
) -> None:
    rig = Rig(fairwarning, "web-0", PLAIN, tmp_path)
    await rig.start()

    def gone() -> Config:
        raise FileNotFoundError("agent.toml")

    Reloader(rig.runner, rig.service, gone).reload()
    assert rig.runner.config is PLAIN
    await rig.stop()


def test_a_name_is_enough_unless_a_rule_or_a_template_asks_for_more() -> None:
    assert not needs_more(PLAIN)
    assert not needs_more(config(Rule(name="r", scheduled=(action("{me}"),))))
    assert needs_more(TAGGED)
    told = Action(settings=Run(command=("tell", "{me.location}")))
    assert needs_more(config(Rule(name="r", finished=(told,))))


def test_who_this_vm_is_is_asked_again_ever_more_seldom_and_not_in_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(polling, "BACKOFF_S_MAX", 5.0)
    assert [pause_s(failures, 0.0) for failures in range(1, 6)] == [0.5, 1.0, 2.0, 2.5, 2.5]
    assert [pause_s(failures, 0.5) for failures in range(1, 6)] == [0.75, 1.5, 3.0, 3.75, 3.75]
