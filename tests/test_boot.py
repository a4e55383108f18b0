"""The objects of a server are made from its settings, and a store that was opened is closed."""

from pathlib import Path

import pytest

from fairwarning.boot import BadStoreUrl, make_store, make_token_in
from fairwarning.core.instants import HOUR_MS
from fairwarning.engine.clocks import SystemClock, VirtualClock
from fairwarning.operator_api.auth import Role, Tokens
from fairwarning.operator_api.problems import Problem
from fairwarning.stores.sqlite import SqliteStore

POSTGRES = "postgresql://nobody@127.0.0.1:1/x"


async def test_a_token_can_be_made_in_a_store_that_a_server_opens_next(tmp_path: Path) -> None:
    url, clock = f"sqlite:///{tmp_path}/fw.db", SystemClock()
    began = clock.now()
    made, text = await make_token_in(url, "ada", Role.OPERATOR, for_ms=HOUR_MS)
    with pytest.raises(Problem, match="ada"):
        await make_token_in(url, "ada", Role.ADMIN, for_ms=None)
    store = make_store(url, clock)
    await store.open()
    try:
        caller = await Tokens(store, clock).caller(text)
    finally:
        await store.close()
    assert caller is not None
    assert (caller.name, caller.role) == ("ada", Role.OPERATOR)
    assert made.expires_ms is not None
    assert began + HOUR_MS <= made.expires_ms <= clock.now() + HOUR_MS


def test_nodes_share_a_postgresql_store_unless_their_clock_is_virtual() -> None:
    assert make_store(POSTGRES, SystemClock()).is_shared
    assert make_store(POSTGRES.replace("postgresql", "postgres"), SystemClock()).is_shared
    assert not make_store(POSTGRES, VirtualClock(), has_own_time=True).is_shared


@pytest.mark.parametrize("url", ["sqlite:///", "sqlite:///~nobody-is-called-this/fw.db",
                                 "sqlite:///a\0b", "mysql://x", "memory"])  # fmt: skip
def test_a_url_that_names_no_store_is_refused(url: str) -> None:
    with pytest.raises(BadStoreUrl, match="sqlite:///PATH"):
        make_store(url, SystemClock())


def test_a_file_may_be_named_from_the_home_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    store = make_store("sqlite:///~/fw.db", SystemClock())
    assert isinstance(store, SqliteStore)
