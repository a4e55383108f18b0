"""The state on disk: whole, of one agent, and understood."""

import json
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from fairwarning.agent.config.reader import read_config
from fairwarning.agent.records import ActionState, Approval, Memory, Progress
from fairwarning.agent.state_changes import update_events
from fairwarning.agent.state_file import FORM, StateFile, StateProblem, read_state
from fairwarning.client.changes import Seen
from tests.agent.test_config import WHOLE
from tests.agent.values import ME, NOW, event


def full_memory() -> Memory:
    """With every kind of action, and every field set."""
    seen = Seen(incarnation=3, events={"E1": event()}, approved=frozenset("E1"), over=("E0",))
    config = replace(read_config(WHOLE), rules=(replace(read_config(WHOLE).rules[0], duration=None,
                     description=""),))  # fmt: skip
    memory, _ = update_events(Memory(), seen, config, ME, NOW)
    action_states = {
        "scheduled/0": ActionState(progress=Progress.DONE),
        "started/0": ActionState(
            progress=Progress.UNDOING, why="no", undo_failures=2, retry_at=NOW
        ),
    }
    record = memory.records["E1"]
    assert record.rule is not None
    memory = memory.with_record(
        replace(record, action_states=action_states, approval=Approval.BEGUN)
    )
    return replace(memory, kept={"key": {"active": "a b"}})


def test_what_was_saved_is_what_is_read(tmp_path: Path) -> None:
    state = StateFile(tmp_path / "new" / "agent.json")
    assert state.open() == Memory()
    state.save(full_memory())
    state.close()
    assert read_state(state.path) == full_memory()
    assert StateFile(state.path).open() == full_memory()
    assert os.stat(state.path).st_mode & 0o077 == 0, "headers may hold secrets"


def test_each_part_is_written_also_if_it_alone_has_changed(tmp_path: Path) -> None:
    state = StateFile(tmp_path / "s.json")
    state.open()
    memory = full_memory()
    changed = [
        memory,
        replace(memory, kept={"key": {"active": "b"}}),
        replace(memory, seen=Seen(incarnation=4, events=memory.seen.events)),
        replace(memory, records={}),
        Memory(),
        memory,
    ]
    for each in changed:
        state.save(each)
        assert read_state(state.path) == each
    state.close()


def test_a_file_that_was_left_behind_lends_the_state_neither_its_rights_nor_its_readers(
    tmp_path: Path,
) -> None:
    left = tmp_path / "s.json.new"
    left.write_text("")
    left.chmod(0o644)
    with left.open("rb") as reader:
        state = StateFile(tmp_path / "s.json")
        state.open()
        state.save(full_memory())
        state.close()
        assert reader.read() == b""
    assert os.stat(state.path).st_mode & 0o777 == 0o600
    assert read_state(state.path) == full_memory()


def test_two_agents_do_not_share_a_state(tmp_path: Path) -> None:
    first, second = StateFile(tmp_path / "s.json"), StateFile(tmp_path / "s.json")
    first.open()
    with pytest.raises(StateProblem, match="another agent uses"):
        second.open()
    first.close()
    second.open()
    second.close()


def test_a_write_that_was_cut_off_changes_nothing(tmp_path: Path) -> None:
    state = StateFile(tmp_path / "s.json")
    state.open()
    state.save(full_memory())
    state.close()
    (tmp_path / "s.json.new").write_text('{"form": 1, "mem')
    again = StateFile(tmp_path / "s.json")
    assert again.open() == full_memory()
    again.save(Memory())
    again.close()
    assert read_state(again.path) == Memory()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (json.dumps({"form": FORM + 1, "new": True}), "a newer agent"),
        (json.dumps({"form": FORM - 1, "memory": {}}), "an older agent"),
        ('{"form": 2, "mem', "is damaged"),
        ("[]", "no state of an agent"),
        ('{"form": 2, "memory": {"records": {"a": 5}}}', "no state of an agent"),
    ],
)
def test_a_state_that_is_not_understood_is_left_alone(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(text)
    state = StateFile(path)
    with pytest.raises(StateProblem, match=said):
        state.open()
    assert path.read_text() == text
    path.unlink()
    state.open()
    state.close()


def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateProblem, match="set `state`"):
        StateFile(tmp_path / "file" / "s.json").open()


def test_fields_of_another_version_are_no_problem(tmp_path: Path) -> None:
    """One that is missing has its default, one that is unknown is left out."""
    state = StateFile(tmp_path / "s.json")
    state.open()
    state.save(full_memory())
    state.close()
    raw = json.loads(state.path.read_text())
    raw["memory"]["of_tomorrow"] = 5
    del raw["memory"]["records"]["E1"]["margin_s"]
    state.path.write_text(json.dumps(raw))
    record = read_state(state.path).records["E1"]
    assert record.margin_s == 0
    assert record.not_before == NOW + timedelta(minutes=15)


@pytest.mark.parametrize(
    ("found", "by"),
    [
        ('"progress":"done"', '"progress":"unknown"'),
        ('"kind":"Run"', '"kind":"Walk"'),
        ('"retries":0', '"retries":"0"'),
        ('"over":["E0"]', '"over":"E0"'),
    ],
)
def test_a_value_of_another_kind_is_not_taken_for_what_it_seems(
    tmp_path: Path, found: str, by: str
) -> None:
    state = StateFile(tmp_path / "agent.json")
    state.open()
    state.save(full_memory())
    state.close()
    text = state.path.read_text()
    assert found in text
    state.path.write_text(text.replace(found, by))
    with pytest.raises(StateProblem):
        read_state(state.path)


def test_a_state_that_cannot_be_read_is_no_empty_one(tmp_path: Path) -> None:
    (tmp_path / "agent.json").mkdir()
    with pytest.raises(StateProblem, match=r"agent\.json cannot be read: Is a directory"):
        read_state(tmp_path / "agent.json")
