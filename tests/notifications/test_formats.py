"""The event as it was after each line of the journal, also if a line cannot be read."""

from typing import Any

import pytest
from msgspec.structs import replace

from fairwarning.core.instants import HOUR_MS
from fairwarning.core.model import Phase
from fairwarning.core.transitions import Unknown
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import Entry
from fairwarning.notifications import formats
from fairwarning.notifications.formats import event_at, starts_at_once
from fairwarning.stores.memory import MemoryStore
from tests.notifications.rig import NotificationRig, notification_rig


class Unreadable(MemoryStore):
    """A newer version has written the line of this kind."""

    kind = ""

    async def history(self, **asked: Any) -> list[Entry]:
        found = await super().history(**asked)
        return [
            replace(each, transition=Unknown(kind="Newer", body="{}"))
            if type(each.transition).__name__ == self.kind
            else each
            for each in found
        ]


async def entries(rig: NotificationRig, kind: str) -> list[Entry]:
    found = await rig.store.journal(limit=1_000)
    return [each for each in found if type(each.transition).__name__ == kind]


@pytest.mark.parametrize("page", [1, 2, 200])
async def test_an_event_is_told_as_it_was_however_long_its_history(
    page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "PAGE_ENTRIES_MAX", page)
    async with notification_rig() as rig:
        id = await rig.reboot("web-0")
        other = await rig.reboot("web-1")
        await rig.approve(id, "web-0")
        await rig.approve(other, "web-1")
        await rig.pass_time(HOUR_MS)
        told = []
        for kind in ("Scheduled", "Approved", "Started", "Completed"):
            event = await event_at(rig.store, (await entries(rig, kind))[0])
            assert event is not None
            told.append((event.id, event.phase, len(event.approvals)))
        assert told == [
            (id, Phase.SCHEDULED, 0),
            (id, Phase.SCHEDULED, 1),
            (id, Phase.STARTED, 1),
            (id, Phase.COMPLETED, 1),
        ]
        assert [await starts_at_once(rig.store, each) for each in await entries(rig, "Scheduled")] \
            == [False, False]  # fmt: skip


async def test_after_a_line_that_cannot_be_read_it_is_the_event_as_it_is_stored() -> None:
    clock = VirtualClock()
    store = Unreadable(clock)
    async with notification_rig(store, clock) as rig:
        id = await rig.reboot("web-0")
        await rig.approve(id, "web-0")
        await rig.pass_time(HOUR_MS)
        (started,) = await entries(rig, "Started")
        store.kind = "Approved"
        event = await event_at(store, started)
        assert event is not None
        assert (event.id, event.phase) == (id, Phase.COMPLETED)
        await rig.pass_time(100 * HOUR_MS)
        vars(store)["_events"].clear()
        assert await event_at(store, started) is None


async def test_a_line_about_no_event_has_none() -> None:
    async with notification_rig() as rig:
        (activated, *_) = await entries(rig, "Activated")
        assert await event_at(rig.store, activated) is None
        assert not await starts_at_once(rig.store, activated)
