"""Messages reach a real HTTP server: signed, in order, and again after failures."""

from itertools import pairwise
from typing import Any

import pytest

from fairwarning.core.instants import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from fairwarning.core.model import EventType
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.webhook_signatures import signature_of
from fairwarning.notifications import delivery, dispatcher, formats
from fairwarning.notifications.formats import message_to
from fairwarning.notifications.model import Filters, Message
from fairwarning.notifications.records import NotificationRecords
from tests.engine.harness import ME
from tests.notifications.receiver import HANG, receiving
from tests.notifications.rig import notification_rig


async def test_one_message_for_each_transition_in_order() -> None:
    async with notification_rig() as rig, receiving() as receiver:
        await rig.webhook(await rig.node(), receiver.url)
        id = await rig.reboot("web-0")
        await rig.approve(id, "web-0")
        await rig.pass_time(MINUTE_MS)
        assert receiver.kinds == ["scheduled", "approved", "started", "completed"]
        assert [each.json["subject"] for each in receiver.requests] == [id] * 4


@pytest.mark.parametrize("page", [1, formats.PAGE_ENTRIES_MAX])
async def test_each_message_has_the_event_as_it_was_then_and_not_as_it_is_now(
    page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "PAGE_ENTRIES_MAX", page)
    async with notification_rig() as rig, receiving() as receiver:
        notifications = await rig.node()
        await rig.webhook(notifications, receiver.url)
        await rig.stop()
        id = await rig.reboot("web-0")
        await rig.approve(id, "web-0")
        await rig.clock.advance(HOUR_MS)
        await rig.node()
        await rig.sender.idle()
        phases = [each.json["data"]["event"]["phase"] for each in receiver.requests]
        assert phases == ["scheduled", "scheduled", "started", "completed"]


async def test_a_message_is_a_signed_cloud_event() -> None:
    async with notification_rig() as rig, receiving() as receiver:
        target = await rig.webhook(await rig.node(), receiver.url)
        await rig.reboot("web-0")
        await rig.sender.idle()
        (request,) = receiver.requests
        headers = request.headers
        assert headers["content-type"] == "application/cloudevents+json"
        assert headers["webhook-id"] == request.json["id"]
        timestamp_s = int(headers["webhook-timestamp"])
        assert timestamp_s == rig.clock.now() // SECOND_MS
        assert headers["webhook-signature"] == signature_of(
            target.secret, headers["webhook-id"], timestamp_s, request.body
        )


async def test_a_failed_message_comes_again_and_later_ones_do_not_wait_for_it() -> None:
    failing = {"scheduled"}
    async with (
        notification_rig() as rig,
        receiving(lambda request: 503 if request.kind in failing else 200) as receiver,
    ):
        await rig.webhook(await rig.node(), receiver.url)
        id = await rig.reboot("web-0")
        await rig.sender.idle()
        await rig.approve(id, "web-0")
        await rig.sender.idle()
        failing.clear()
        await rig.pass_time(2 * SECOND_MS)
        assert receiver.kinds == ["scheduled", "approved", "started", "scheduled"]
        assert receiver.requests[3].body == receiver.requests[0].body


async def test_pauses_grow_and_the_last_failure_makes_a_dead_letter() -> None:
    async with notification_rig() as rig, receiving(lambda _: 500) as receiver:
        notifications = await rig.node()
        target = await rig.webhook(
            notifications, receiver.url, filters=Filters(kinds=("Scheduled",))
        )
        await rig.reboot("web-0")
        await rig.pass_time(DAY_MS)
        assert len(receiver.requests) == 8
        times = [int(each.headers["webhook-timestamp"]) for each in receiver.requests]
        pauses = [later - earlier for earlier, later in pairwise(times)]
        assert pauses == sorted(pauses)
        assert sum(pauses) > 5 * HOUR_MS // SECOND_MS
        (letter,) = await notifications.dead_letters()
        assert (letter.target_id, letter.attempts, letter.last_error) == (
            target.id,
            8,
            "answered 500",
        )
        assert not await rig.store.records("notification-delivery", limit=1)


async def test_gone_is_never_tried_again() -> None:
    async with notification_rig() as rig, receiving(lambda _: 410) as receiver:
        notifications = await rig.node()
        await rig.webhook(notifications, receiver.url, filters=Filters(kinds=("Scheduled",)))
        await rig.reboot("web-0")
        await rig.pass_time(DAY_MS)
        assert len(receiver.requests) == 1
        assert [each.last_error for each in await notifications.dead_letters()] == ["answered 410"]


@pytest.mark.parametrize("status", [400, 401, 404, 408, 429, 503])
async def test_any_other_no_is_tried_again(status: int) -> None:
    """A receiver may be deployed anew, or have a new key, in the meantime."""
    answers = iter([status])
    async with notification_rig() as rig, receiving(lambda _: next(answers, 200)) as receiver:
        notifications = await rig.node()
        await rig.webhook(notifications, receiver.url, filters=Filters(kinds=("Scheduled",)))
        await rig.reboot("web-0")
        await rig.pass_time(2 * SECOND_MS)
        assert len(receiver.requests) == 2
        assert not await notifications.dead_letters()


async def test_a_redirect_is_a_failure_and_is_not_followed() -> None:
    async with notification_rig() as rig, receiving(lambda _: 307) as receiver:
        notifications = await rig.node()
        target = await rig.webhook(notifications, receiver.url)
        outcome = await notifications.test(target.id)
        assert outcome.error == "answered 307"
        assert len(receiver.requests) == 1


async def test_a_dead_letter_can_be_tried_again_or_discarded() -> None:
    status = [410]
    async with notification_rig() as rig, receiving(lambda _: status[0]) as receiver:
        notifications = await rig.node()
        await rig.webhook(notifications, receiver.url, filters=Filters(kinds=("Scheduled",)))
        await rig.reboot("web-0")
        await rig.reboot("web-1")
        await rig.sender.idle()
        first, second = await notifications.dead_letters()
        assert await notifications.dead_letters(after=first.id) == [second]
        status[0] = 200
        await notifications.retry(first.id)
        await rig.sender.idle()
        assert receiver.requests[2].body.decode() == first.message.body
        await notifications.discard(second.id)
        assert not await notifications.dead_letters()
        for unknown in (notifications.retry, notifications.discard):
            with pytest.raises(Refused) as refused:
                await unknown(first.id)
            assert refused.value.code is Code.UNKNOWN_NOTIFICATION


async def test_a_target_that_hangs_delays_neither_another_nor_the_clock() -> None:
    async with (
        notification_rig() as rig,
        receiving(lambda _: HANG) as hanging,
        receiving() as receiver,
    ):
        notifications = await rig.node()
        await rig.webhook(notifications, hanging.url, name="hangs")
        await rig.webhook(notifications, receiver.url, name="works")
        await rig.reboot("web-0")
        await hanging.has(1)
        await rig.clock.advance(HOUR_MS)
        await receiver.has(3)
        assert receiver.kinds == ["scheduled", "started", "completed"]
        assert len(hanging.requests) == 1


async def test_a_target_hears_only_what_it_asked_for() -> None:
    async with notification_rig() as rig, receiving() as receiver, receiving() as other:
        notifications = await rig.node()
        wanted = Filters(kinds=("Completed",), scopes=("web",), types=(EventType.REBOOT,))
        await rig.webhook(notifications, receiver.url, filters=wanted)
        await rig.webhook(notifications, other.url, "db", Filters(scopes=("db",)))
        await rig.reboot("web-0")
        await rig.pass_time(HOUR_MS)
        assert receiver.kinds == ["completed"]
        assert not other.requests


async def test_a_new_target_hears_from_now_on_and_a_removed_one_nothing_more() -> None:
    async with notification_rig() as rig, receiving() as receiver:
        notifications = await rig.node()
        await rig.reboot("web-0")
        target = await rig.webhook(
            notifications, receiver.url, filters=Filters(kinds=("Scheduled",))
        )
        id = await rig.reboot("web-1")
        await rig.sender.idle()
        await notifications.remove(target.id, by=ME)
        await rig.reboot("web-2")
        await rig.pass_time(HOUR_MS)
        assert [each.json["subject"] for each in receiver.requests] == [id]
        assert not await notifications.list()
        for kind in (
            "notification-target",
            "notification-cursor",
            "notification-delivery",
            "notification-dead",
        ):
            assert not await rig.store.records(kind, limit=1)


async def test_removing_a_target_drops_what_waits_for_it_and_its_dead_letters() -> None:
    async with (
        notification_rig() as rig,
        receiving(lambda request: 410 if request.kind == "scheduled" else 500) as receiver,
    ):
        notifications = await rig.node()
        target = await rig.webhook(notifications, receiver.url)
        await rig.approve(await rig.reboot("web-0"), "web-0")
        await rig.sender.idle()
        await notifications.remove(target.id, by=ME)
        for kind in ("notification-cursor", "notification-delivery", "notification-dead"):
            assert not await rig.store.records(kind, limit=1)


async def test_removing_a_target_leaves_what_others_have() -> None:
    async with (
        notification_rig() as rig,
        receiving(lambda request: 410 if request.kind == "scheduled" else 500) as receiver,
    ):
        notifications = await rig.node()
        one = await rig.webhook(notifications, receiver.url, "one")
        two = await rig.webhook(notifications, receiver.url, "two")
        await rig.approve(await rig.reboot("web-0"), "web-0")
        await rig.sender.idle()
        await notifications.remove(one.id, by=ME)
        assert [each.target_id for each in await notifications.dead_letters()] == [two.id]
        waiting = await NotificationRecords(rig.store).waiting(two.id)
        assert waiting
        assert len(await rig.store.records("notification-delivery", limit=99)) == len(waiting)
        assert [each.id for each in await notifications.list()] == [two.id]
        assert [each.key for each in await rig.store.records("notification-cursor", limit=9)] == [
            two.id
        ]


async def test_a_test_message_is_sent_at_once_and_once() -> None:
    async with notification_rig() as rig, receiving(lambda _: 500) as receiver:
        notifications = await rig.node()
        target = await rig.webhook(notifications, receiver.url)
        outcome = await notifications.test(target.id)
        assert (outcome.is_delivered, outcome.error) == (False, "answered 500")
        await rig.pass_time(DAY_MS)
        assert [each.json["type"] for each in receiver.requests] == [
            "com.fairwarning.notification.test.v1"
        ]


async def test_the_history_says_who_made_and_removed_a_target() -> None:
    async with notification_rig() as rig:
        notifications = await rig.node()
        target = await rig.webhook(notifications, "http://127.0.0.1:9/", name="ops")
        await notifications.remove(target.id, by=ME, why="not needed")
        made, removed = (await rig.rig.entries())[-2:]
        assert (made.by, removed.why) == (ME, "not needed")
        assert target.secret not in str(made)


async def test_targets_have_names_of_their_own_and_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dispatcher, "TARGETS_MAX", 2)
    async with notification_rig() as rig:
        notifications = await rig.node()
        made = [
            await rig.webhook(notifications, "http://127.0.0.1:9/", name) for name in ("a", "b")
        ]
        for name, says in (("c", "there are 2 targets already"), ("a", "targets already")):
            with pytest.raises(Refused, match=says):
                await rig.webhook(notifications, "http://127.0.0.1:9/", name)
        await notifications.remove(made[1].id, by=ME)
        with pytest.raises(Refused, match="there is a target 'a' already"):
            await rig.webhook(notifications, "http://127.0.0.1:9/", "a")
        assert [each.id for each in await notifications.list()] == [made[0].id]


async def test_a_bug_delays_messages_and_loses_none(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bugs = iter(range(2))

    async def stumble(*given: Any) -> Message:
        if next(bugs, None) is not None:
            raise RuntimeError("a bug")
        return await message_to(*given)

    monkeypatch.setattr(delivery, "message_to", stumble)
    async with notification_rig() as rig, receiving() as receiver:
        await rig.webhook(await rig.node(), receiver.url, filters=Filters(kinds=("Scheduled",)))
        await rig.reboot("web-0")
        await rig.pass_time(2 * delivery.RECHECK_MS - 1)
        assert receiver.requests == []
        await rig.pass_time(1)
        assert receiver.kinds == ["scheduled"]
    assert "notifications to hook stumbled and go on" in caplog.text
