"""Units, with a stand-in for systemctl that keeps their states in a file."""

import json
from pathlib import Path

import pytest

from fairwarning.agent.actions.base import ActionFailed
from fairwarning.agent.actions.systemd import SystemdHandler, Unit, read_units
from fairwarning.agent.config.model import Action, Systemd
from tests.agent.actions.contexts import context, program

STAND_IN = """
states = json.loads((here / 'states').read_text())
words = [word for word in sys.argv[1:] if not word.startswith('--')]
with (here / 'calls').open('a') as calls:
    calls.write(' '.join(words) + chr(10))
verb, units = words[0], [word + '.service' for word in words[1:] if '.' not in word]
units += [word for word in words[1:] if '.' in word]
if verb == 'show':
    for unit in units:
        load = 'loaded' if unit in states else 'not-found'
        print(f"Id={unit}\\nLoadState={load}\\nActiveState={states.get(unit, 'inactive')}\\n")
elif (here / 'broken').exists():
    sys.exit('Job for it failed.')
else:
    states.update({unit: 'active' if verb == 'start' else 'inactive' for unit in units})
    (here / 'states').write_text(json.dumps(states))
"""
BEFORE = {"a.service": "active", "b.service": "inactive", "c.service": "activating"}
ACTION = Action(settings=Systemd(stop=("a", "b", "c")))


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program(folder, "systemctl", STAND_IN)
        (folder / "states").write_text(json.dumps(BEFORE))

    def states(self) -> dict[str, str]:
        states: dict[str, str] = json.loads((self.folder / "states").read_text())
        return states

    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return Machine(tmp_path)


async def test_units_are_stopped_in_order_and_those_that_ran_are_started_in_the_opposite(
    machine: Machine,
) -> None:
    kept: dict[str, str] = {}
    await SystemdHandler().do(ACTION, context(kept))
    assert set(machine.states().values()) == {"inactive"}
    await SystemdHandler().undo(ACTION, context(kept))
    assert machine.states() == {**BEFORE, "c.service": "active"}
    assert machine.calls()[1:] == ["stop a", "stop b", "stop c", "start c.service",
                                   "start a.service"]  # fmt: skip


async def test_a_second_try_remembers_what_ran_before_the_first(machine: Machine) -> None:
    kept: dict[str, str] = {}
    (machine.folder / "broken").touch()
    with pytest.raises(ActionFailed, match="systemctl ended with code 1: Job for it failed"):
        await SystemdHandler().do(ACTION, context(kept))
    (machine.folder / "broken").unlink()
    await SystemdHandler().do(ACTION, context(kept))
    await SystemdHandler().do(ACTION, context(kept))
    await SystemdHandler().undo(ACTION, context(kept))
    assert machine.states()["a.service"] == "active"
    assert machine.states()["b.service"] == "inactive"


@pytest.mark.parametrize(
    "said",
    [
        "Failed to stop a.service: Access denied",
        "Failed to stop a.service: Interactive authentication required.",
        "Failed to get properties: Transport endpoint is not connected",
    ],
)
async def test_who_lacks_the_right_is_told_where_to_get_it(machine: Machine, said: str) -> None:
    program(machine.folder, "systemctl", f"sys.exit({said!r})")
    with pytest.raises(ActionFailed, match="on who may stop units"):
        await SystemdHandler().do(ACTION, context())


async def test_undo_of_what_was_never_done_starts_nothing(machine: Machine) -> None:
    await SystemdHandler().undo(ACTION, context())
    assert machine.states() == BEFORE


async def test_a_unit_that_is_not_there_is_named_and_nothing_is_stopped(machine: Machine) -> None:
    kept: dict[str, str] = {}
    with pytest.raises(ActionFailed, match=r"no unit wbe\.service"):
        await SystemdHandler().do(Action(settings=Systemd(stop=("a", "wbe"))), context(kept))
    assert machine.states() == BEFORE
    assert kept == {}


def test_states_are_read_by_name_and_not_by_order() -> None:
    shown = "ActiveState=failed\nId=a.service\nLoadState=loaded\n\nId=b.timer\nActiveState=active\n"
    assert read_units(shown) == [
        Unit(name="a.service", is_there=True, is_running=False),
        Unit(name="b.timer", is_there=True, is_running=True),
    ]
    assert read_units("") == []
