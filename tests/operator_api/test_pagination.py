"""Every list, page by page: nothing is left out, nothing comes twice, and each page has its end."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fairwarning.core.instants import Instant
from fairwarning.engine.protocols import Position
from fairwarning.notifications.model import Delivery, Message
from fairwarning.notifications.records import NotificationRecords
from tests.operator_api.rig import Rig

COUNT = 5
LIMIT_MAX = 500


async def scopes(rig: Rig) -> None:
    await rig.post("/fleet", {"vm": [{"name": f"db{n}"} for n in range(COUNT - 3)]})


async def scopes_and_empty_ones(rig: Rig) -> None:
    await rig.post("/fleet", {"vm": [{"name": f"a{n}"} for n in range(COUNT)]})
    for name in ("a1", "a2", "a4"):
        await rig.delete(f"/scopes/{name}")


async def found_scopes(rig: Rig) -> None:
    await rig.post("/fleet", {"vm": [{"name": f"page{n}"} for n in range(COUNT)]})


async def events(rig: Rig) -> None:
    """Two in one millisecond: then their ids say which comes first."""
    for n in range(COUNT - 1):
        await rig.schedule(f"web-{n}", type="Freeze")
    await rig.clock.advance(1)
    await rig.schedule("db")


async def lines(rig: Rig) -> None:
    for n in range(COUNT):
        await rig.post("/tokens", {"name": f"t{n}", "role": "viewer"}, 201)


async def rollouts(rig: Rig) -> None:
    for _ in range(COUNT):
        await rig.post("/rollouts", {"type": "Reboot", "scopes": ["web"]}, 201)
        await rig.clock.advance(1)


async def dead_letters(rig: Rig) -> None:
    shelf = NotificationRecords(rig.node.store)
    message = Message(id="m", title="t", text="t", body="{}")
    for n in range(COUNT):
        await shelf.put_dead(
            Delivery(
                id=f"{n:012x}-aa",
                target_id="t",
                position=Position("1"),
                message=message,
                attempts=8,
                next_try_ms=Instant(0),
                last_error="no answer",
            )
        )


Make = Callable[[Rig], Awaitable[None]]
LISTS: dict[str, tuple[str, str, Make, dict[str, Any]]] = {
    "fleet": ("/fleet", "scopes", scopes, {}),
    "fleet with empty scopes": ("/fleet", "scopes", scopes_and_empty_ones, {}),
    "search": ("/fleet", "scopes", found_scopes, {"search": "page"}),
    "events": ("/events", "events", events, {}),
    "events of a kind": ("/events", "events", events, {"source": "Platform"}),
    "history": ("/history", "entries", lines, {}),
    "tokens": ("/tokens", "tokens", lines, {}),
    "rollouts": ("/rollouts", "rollouts", rollouts, {}),
    "dead letters": ("/notifications/dead-letters", "deadLetters", dead_letters, {}),
}


def identity(each: Any) -> str:
    return str(each.get("id") or each["position"])


@pytest.mark.parametrize("name", LISTS)
async def test_pages_of_any_size_make_up_the_whole_list(rig: Rig, name: str) -> None:
    path, key, make, more = LISTS[name]
    await make(rig)
    whole = [identity(each) for each in (await rig.get(path, limit=LIMIT_MAX, **more))[key]]
    assert len(whole) >= COUNT
    assert len(set(whole)) == len(whole)
    for limit in (1, 2, len(whole) - 1, len(whole), len(whole) + 1):
        pages: list[list[str]] = []
        after: dict[str, Any] = {}
        while True:
            page = await rig.get(path, limit=limit, **more, **after)
            pages.append([identity(each) for each in page[key]])
            if page["next"] is None:
                break
            after = {"after": page["next"]}
        assert [each for page in pages for each in page] == whole, limit
        assert all(len(page) == limit for page in pages[:-1]), limit
        assert len(pages[-1]) < limit, "only a page that is not full has no next one"
        assert len(pages) == len(whole) // limit + 1


@pytest.mark.parametrize("name", LISTS)
async def test_behind_the_last_one_there_is_an_empty_page(rig: Rig, name: str) -> None:
    path, key, make, more = LISTS[name]
    await make(rig)
    whole = await rig.get(path, limit=LIMIT_MAX, **more)
    full = await rig.get(path, limit=len(whole[key]), **more)
    assert (full[key], whole["next"]) == (whole[key], None)
    assert await rig.get(path, after=full["next"], limit=1, **more) == {key: [], "next": None}


@pytest.mark.parametrize("name", LISTS)
async def test_a_limit_is_from_1_to_500(rig: Rig, name: str) -> None:
    path, _, _, more = LISTS[name]
    for limit in (0, -1, LIMIT_MAX + 1, "x", "1.5"):
        problem = await rig.get(path, 422, limit=limit, **more)
        assert (problem["code"], problem["pointer"]) == ("parameter-invalid", "/limit")
    for limit in (1, LIMIT_MAX):
        await rig.get(path, limit=limit, **more)


async def test_what_is_new_does_not_move_the_pages_behind_it(rig: Rig) -> None:
    await events(rig)
    whole = (await rig.get("/events"))["events"]
    first = await rig.get("/events", limit=2)
    await rig.clock.advance(1)
    await rig.schedule("workers_0")
    rest = (await rig.get("/events", after=first["next"]))["events"]
    assert first["events"] + rest == whole


@pytest.mark.parametrize("path", ["/events", "/history", "/rollouts"])
async def test_a_cursor_of_another_list_is_refused(rig: Rig, path: str) -> None:
    """And does not begin again at the first page, which would never end."""
    await events(rig)
    await rollouts(rig)
    cursors = {
        other: (await rig.get(other, limit=1))["next"]
        for other in ("/events", "/history", "/rollouts", "/fleet")
    }
    cursors["nonsense"] = "nonsense"
    cursors["too much"] = "9" * 30
    cursors["half"] = "1600000000000_"
    cursors["other digits"] = "١٢_x"
    for other, cursor in cursors.items():
        if other != path:
            problem = await rig.get(path, 422, after=cursor)
            assert problem["code"] == "cursor-invalid", (path, other, cursor)
