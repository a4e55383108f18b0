"""The memory of keys in files: attempts only grow, changes are kept whole or not at all."""

import fcntl
from pathlib import Path

import pytest
from msgspec.structs import replace

from fairwarning.drivers import DriverFailed, Found, KeyFiles
from tests.drivers.orders import order


def test_what_is_changed_is_remembered(tmp_path: Path) -> None:
    with KeyFiles(tmp_path).of(order({})) as key:
        assert (key.state, key.attempt) == (Found.UNKNOWN, 1)
        key.state = Found.DONE
        key.notes["until"] = 7
    with KeyFiles(tmp_path).of(replace(order({}), attempt=3)) as key:
        assert (key.state, key.attempt, key.notes) == (Found.DONE, 3, {"until": 7})


def test_a_lower_attempt_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    with KeyFiles(tmp_path).of(replace(order({}), attempt=2)):
        pass
    with (
        pytest.raises(DriverFailed, match="attempt 2 was seen already, so 1 is too late"),
        KeyFiles(tmp_path).of(order({})) as key,
    ):
        key.refuse_lower(1)
    with KeyFiles(tmp_path).of(order({})) as key:
        assert key.attempt == 2


def test_a_record_is_open_only_once_at_a_time(tmp_path: Path) -> None:
    """Two nodes would otherwise both find the key unknown, and both act."""
    with KeyFiles(tmp_path).of(order({})):
        (path,) = tmp_path.glob("*.lock")
        with path.open() as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_block_that_fails_changes_only_the_attempt(tmp_path: Path) -> None:
    def fail() -> None:
        with KeyFiles(tmp_path).of(order({})) as key:
            key.state = Found.DONE
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with KeyFiles(tmp_path).of(order({})) as key:
        assert (key.state, key.attempt) == (Found.UNKNOWN, 1)


def test_a_folder_that_is_away_and_a_damaged_file_are_failures(tmp_path: Path) -> None:
    with (
        pytest.raises(DriverFailed, match="No such file or directory"),
        KeyFiles(tmp_path / "none").of(order({})),
    ):
        pass
    (tmp_path / f"{order({}).key}.json").write_text("{")
    with pytest.raises(DriverFailed, match="is damaged"), KeyFiles(tmp_path).of(order({})):
        pass
