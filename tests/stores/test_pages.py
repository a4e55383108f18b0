"""Every list of every store, page by page, with a page that ends exactly where the list does."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fairwarning.common.loop_slices import SLICE_ITEMS
from fairwarning.core.commands import Cancel, Schedule
from fairwarning.core.model import EventId, EventType, InstanceName, Phase, Scope
from fairwarning.core.transitions import Noted
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import START, Choice, Mark, Store
from fairwarning.stores import codec, sql_store
from fairwarning.stores.codec import Row
from tests.stores.fleet import ME, declare, new_id, submit, vm, web

COUNT = 5
Page = Callable[[Any, int], Awaitable[list[Any]]]


async def filled(store: Store, clock: VirtualClock) -> EventId:
    """With several of everything, and the event of which most is told."""
    await declare(store, web(), *(vm(f"v{n}") for n in range(COUNT - 1)))
    ids = [new_id() for _ in range(COUNT)]
    for n, id in enumerate(ids):
        name = InstanceName(f"web-{n % 4}")
        kind = EventType.REBOOT if n < 4 else EventType.FREEZE
        await submit(store, web().id, Schedule(event_id=id, type=kind, targets=(name,)))
        if n % 2:
            clock.step(1)  # Some share their millisecond.
    for id in ids:
        await submit(store, web().id, Cancel(event_id=id))
    for n in range(COUNT):
        note = Noted(subject=f"token:{n}", action="made")
        await store.keep("token", f"t{n}", "{}", note=note, by=ME)
    return ids[0]


def lists(store: Store, event_id: EventId) -> dict[str, tuple[Page, Callable[[Any], Any], Any]]:
    """Of each: how a page is read, where the next begins behind an item, and where the first."""

    def of_events(choice: Choice) -> tuple[Page, Callable[[Any], Any], Any]:
        return (
            lambda before, limit: store.events(choice, before=before, limit=limit),
            lambda item: Mark(created_ms=item[1].created_ms, event_id=item[1].id),
            None,
        )

    return {
        "scope ids": (lambda at, limit: store.scope_ids(after=at, limit=limit), str, None),
        "scopes": (
            lambda at, limit: store.scopes(after=at, limit=limit),
            lambda scope: scope.id,
            None,
        ),
        "journal": (
            lambda at, limit: store.journal(after=at, limit=limit),
            lambda entry: entry.position,
            START,
        ),
        "journal of a scope": (
            lambda at, limit: store.journal(after=at, scope_id=web().id, limit=limit),
            lambda entry: entry.position,
            START,
        ),
        "history": (
            lambda at, limit: store.history(before=at, limit=limit),
            lambda entry: entry.position,
            None,
        ),
        "history of a scope": (
            lambda at, limit: store.history(before=at, scope_id=web().id, limit=limit),
            lambda entry: entry.position,
            None,
        ),
        "history of an event": (
            lambda at, limit: store.history(before=at, event_id=event_id, limit=limit),
            lambda entry: entry.position,
            None,
        ),
        "events": of_events(Choice()),
        "events of a type": of_events(Choice(types=(EventType.REBOOT,))),
        "events of a phase": of_events(Choice(phases=(Phase.CANCELLED,))),
        "events of a scope": of_events(Choice(scope_id=web().id)),
        "events of an instance": of_events(Choice(instance=InstanceName("web-0"))),
        "records": (
            lambda at, limit: store.records("token", after=at, limit=limit),
            lambda record: record.key,
            "",
        ),
        "records up to one": (
            lambda at, limit: store.records("token", after=at, until="t3", limit=limit),
            lambda record: record.key,
            "",
        ),
    }


async def test_pages_of_any_size_make_up_the_whole_list(store: Store, clock: VirtualClock) -> None:
    event_id = await filled(store, clock)
    for name, (page, place_of, start) in lists(store, event_id).items():
        whole = await page(start, 1_000)
        assert len(whole) >= 2, name
        for limit in (1, 2, len(whole) - 1, len(whole), len(whole) + 1):
            found: list[Any] = []
            after = start
            while part := await page(after, limit):
                assert len(part) <= limit, name
                found += part
                after = place_of(part[-1])
            assert found == whole, (name, limit)
        assert await page(place_of(whole[-1]), 1) == [], f"{name}: the exact end"


async def test_the_journal_and_the_history_are_each_others_mirror(
    store: Store, clock: VirtualClock
) -> None:
    await filled(store, clock)
    forwards = await store.journal(limit=1_000)
    assert await store.history(limit=1_000) == forwards[::-1]
    for number in (0, 1, len(forwards) - 1):
        here = forwards[number].position
        assert await store.journal(after=here, limit=1_000) == forwards[number + 1 :]
        assert await store.history(before=here, limit=1_000) == forwards[:number][::-1]
    end = await store.end()
    assert await store.journal(after=end, limit=9) == []


async def test_what_is_at_the_border_is_in_the_list_of_records(store: Store) -> None:
    for key in ("a", "b", "c"):
        await store.keep("token", key, "{}", by=ME)
    for after, until, keys in (
        ("a", "c", "bc"),
        ("a", "a", ""),
        ("", "a", "a"),
        ("c", None, ""),
        ("b", None, "c"),
        ("", "bb", "ab"),
    ):
        found = await store.records("token", after=after, until=until, limit=9)
        assert "".join(each.key for each in found) == keys, (after, until)


async def test_a_long_page_is_decoded_in_slices_so_that_polls_do_not_wait(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await declare(store, *(vm(f"v{n:02}") for n in range(3 * SLICE_ITEMS)))
    decoded_in_turn = Counter[int]()
    turn = 0

    def scope_of(row: Row) -> Scope:
        decoded_in_turn[turn] += 1
        return codec.scope_of(row)

    monkeypatch.setattr(sql_store, "scope_of", scope_of)

    async def count_turns() -> None:
        nonlocal turn
        while True:
            await asyncio.sleep(0)
            turn += 1

    counter = asyncio.create_task(count_turns())
    found = await store.scopes(limit=100)
    counter.cancel()
    assert len(found) == 3 * SLICE_ITEMS
    assert all(count <= SLICE_ITEMS for count in decoded_in_turn.values())
