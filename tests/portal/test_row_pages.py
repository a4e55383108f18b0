"""Long tables have pages: the one that is asked for, or the one with what matters now."""

import re
from collections.abc import AsyncIterator

import pytest

from fairwarning.portal.pages import rollouts
from tests.operator_api.rig import Rig, running
from tests.portal.reader import Reader, part, reading


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with running() as rig:
        yield rig


@pytest.fixture
async def reader(rig: Rig) -> AsyncIterator[Reader]:
    async with reading(rig) as reader:
        yield reader


def steps(page: str) -> list[int]:
    return [int(each) for each in re.findall(r"<tr><td>(\d+)</td>", part(page, "steps"))]


async def test_the_steps_of_a_rollout_begin_at_the_one_under_way(
    rig: Rig, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollouts, "STEPS_SHOWN", 2)
    body = {"type": "Freeze", "scopes": ["web", "workers"], "duration": "10s"}
    made = await rig.post("/rollouts", body, 201)
    count, url = len(made["steps"]), f"/rollouts/{made['id']}"
    assert count > 4
    first = await reader.see(url)
    assert steps(first) == [1, 2]
    assert f"1 to 2 of {count}" in first
    assert steps(await reader.see(f"{url}?from=2")) == [3, 4]
    assert steps(await reader.see(f"{url}?from=999")) == [count]
    assert steps(await reader.see(f"{url}?from=-1")) == [1, 2]
    while sum(each["phase"] == "completed" for each in made["steps"]) < 2:
        await rig.post("/clock/advance", {"by": "10m"})
        made = await rig.get(f"/rollouts/{made['id']}")
    assert steps(await reader.see(url))[0] > 1
