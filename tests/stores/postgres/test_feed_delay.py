"""A long transaction of another program that holds the change feed back is named."""

import logging

import pytest

from fairwarning.stores.postgres import feed_delay
from fairwarning.stores.postgres.feed_delay import described
from tests.stores.fleet import declare, web
from tests.stores.nodes import nodes, stranger


async def test_who_holds_the_feed_back_is_named(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(feed_delay, "WARN_S", 0.001)
    monkeypatch.setattr(feed_delay, "LOOK_EVERY_S", 3600)
    caplog.set_level(logging.INFO)
    # Its first look, which the store begins by itself, is an hour away.
    async with nodes(postgres_dsn, 1) as (store,), stranger(postgres_dsn) as other:
        watch = store._parts.feed_delay
        await watch.look()
        assert (watch.delay_s, store.condition.warnings, caplog.messages) == (0, (), [])
        await other.execute("SET application_name = 'nightly report'")
        await other.execute("BEGIN")
        ((pid, _),) = await other.execute("SELECT pg_backend_pid(), pg_current_xact_id()")
        await watch.look()
        assert watch.delay_s == 0, "it holds back nothing yet"
        await declare(store, web())
        while not watch.delay_s:
            await watch.look()
        assert store.condition.feed_delay_s == watch.delay_s
        assert "the log names it" in store.condition.warnings[0]
        (said,) = caplog.messages
        assert f"pid {pid}, application 'nightly report', user postgres, database test_" in said
        await watch.look()
        assert len(caplog.messages) == 1, "it is not said again at once"
        await other.execute("COMMIT")
        await watch.look()
        assert store.condition.warnings == ()
        assert "no longer" in caplog.messages[1]
        await other.execute("BEGIN")
        await other.execute("SELECT pg_current_xact_id()")
        await declare(store, web("db"))
        while not watch.delay_s:
            await watch.look()
        assert "held back" in caplog.messages[2], "the next delay is said at once"


def test_what_is_not_known_is_left_out() -> None:
    prepared = ("prepared transaction x", "", "joe", "shop", 90)
    assert described(prepared) == (
        "a transaction of another program (prepared transaction x, user joe, database shop, open "
        "for 90 s)"
    )
    assert described(("pid 7", "a\nb", None, None, None)).endswith("(pid 7, application 'a\\nb')")
