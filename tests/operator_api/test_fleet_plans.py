"""The plan of a large fleet goes to its process, and comes back, in small frames."""

import pickle
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from fairwarning.boot import make_control
from fairwarning.core.model import Roster
from fairwarning.core.resources import ScaleSet, expand
from fairwarning.drivers import plugins
from fairwarning.operator_api.auth import Caller, Role
from fairwarning.operator_api.context import AzureListener, Control
from fairwarning.operator_api.fleet_plans import (
    FRAME_INSTANCES,
    Wish,
    planned_frames,
    prepare,
    scopes_in,
    steps_in,
)
from fairwarning.operator_api.route import Document
from tests.operator_api.rig import ME, Rig

SETS = 3
CAPACITY = 1_000
LARGEST_SCOPE = 100


def document(capacity: int = CAPACITY, driver: str = "simulated") -> Document:
    lines = [
        f'[[scale_set]]\nname = "s{n}"\ncapacity = {capacity}\ndriver = "{driver}"'
        for n in range(SETS)
    ]
    return Document("\n".join(["test = true", *lines]).encode(), is_toml=True)


def instances(rosters: list[Roster]) -> int:
    return sum(len(each.instances) for each in rosters)


def is_small(count: int) -> bool:
    return 0 < count < FRAME_INSTANCES + LARGEST_SCOPE


def wish(wanted: Document) -> Wish:
    caller = Caller("me", Role.ADMIN)
    return Wish(wanted, prune=True, caller=caller, drivers=plugins.catalogue())


def control_of(rig: Rig) -> Control:
    engine = rig.node.engine
    return make_control(engine, rig.node.store, engine.views, rig.node.clock, AzureListener())


def test_new_and_changed_scopes_come_back_in_small_frames() -> None:
    made = list(planned_frames(wish(document()), [], SETS * CAPACITY))
    created = [scopes_in(each[1:]) for each in made if each[:1] == b"N"]
    assert all(is_small(instances([scope.roster for scope in each])) for each in created)
    current = [scope for each in created for scope in each]
    assert instances([scope.roster for scope in current]) == SETS * CAPACITY
    changed = list(planned_frames(wish(document(CAPACITY - 1)), current, SETS * CAPACITY))
    steps = [steps_in(each[1:]) for each in changed if each[:1] == b"D"]
    assert all(is_small(instances([step.roster for step in each])) for each in steps)


async def test_the_fleet_is_sent_to_the_process_in_small_frames(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = control_of(rig)
    for name in ("one", "two", "three"):
        await control.engine.create(expand(ScaleSet(name=name, capacity=CAPACITY)), by=ME)
    sent: list[bytes] = []

    async def run(job: str, given: Callable[[], AsyncIterator[bytes]], **more: Any) -> list[bytes]:
        sent.extend([frame async for frame in given()])
        return []

    monkeypatch.setattr(control.subprocesses, "run", run)
    await prepare(control, wish(document()))
    frames = [pickle.loads(each[1:]) for each in sent[1:]]
    assert instances([scope.roster for each in frames for scope in each]) > 3 * CAPACITY
    assert all(is_small(instances([scope.roster for scope in each])) for each in frames)
