"""A connection that opens the file when it is needed."""

from pathlib import Path

import pytest

from fairwarning.stores.sqlite.connection import BUSY_S_MAX, LazyConnection


@pytest.mark.parametrize("order", [(False,), (True,), (True, False), (False, True)])
def test_a_lock_is_waited_for_as_the_last_caller_says(
    tmp_path: Path, order: tuple[bool, ...]
) -> None:
    """Also if that caller is the one for whom the file is opened."""
    path = tmp_path / "store.db"
    path.touch()
    connection = LazyConnection(path)
    for waits in order:
        (busy_ms,) = connection.get(waits=waits).execute("PRAGMA busy_timeout").fetchone()
    assert busy_ms == (BUSY_S_MAX * 1000 if order[-1] else 0)
    connection.discard()
