"""Messages in the form of Azure's Event Grid, as a receiver for Azure gets them."""

import json
from typing import Any
from uuid import UUID

import msgspec
import pytest

from fairwarning.core.commands import Cancel, ChangePolicy, Schedule
from fairwarning.core.instants import HOUR_MS, SECOND_MS
from fairwarning.core.model import EventType, InstanceName, OperationKind, Policy, ScopeId
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.transitions import Approved
from fairwarning.core.webhook_signatures import signature_of
from fairwarning.notifications.event_grid import (
    azure_id,
    grid_event,
    grid_message,
    owner_id,
)
from fairwarning.notifications.model import (
    EVENT_GRID_KINDS,
    Filters,
    Format,
    Message,
    Target,
    TargetDraft,
    TargetKind,
    Template,
)
from fairwarning.notifications.targets import checked_target
from tests.core.builders import E1, T0
from tests.engine.harness import ME
from tests.notifications.entries import REBOOT, WEB_ID, entry
from tests.notifications.receiver import Receiver, receiving
from tests.notifications.rig import NotificationRig, notification_rig

WEB_0 = InstanceName("web-0")


def draft(url: str = "https://example.com/x", **more: Any) -> TargetDraft:
    return TargetDraft(**{"name": "grid", "kind": TargetKind.WEBHOOK, "url": url,
                          "format": Format.EVENT_GRID,
                          "filters": Filters(kinds=EVENT_GRID_KINDS), **more})  # fmt: skip


async def subscribe(rig: NotificationRig, receiver: Receiver) -> Target:
    return await (await rig.node()).create(draft(receiver.url), by=ME)


def told(receiver: Receiver) -> list[dict[str, Any]]:
    """Each message is an array of one."""
    found = []
    for request in receiver.requests:
        (message,) = request.json
        found.append(message)
    return found


def statuses(receiver: Receiver) -> list[str]:
    return [m["data"]["resourceInfo"]["properties"]["EventStatus"] for m in told(receiver)]


def test_a_message_has_the_shape_that_azure_documents() -> None:
    id = (
        "/subscriptions/0000/resourceGroups/default/providers/Microsoft.Compute"
        f"/availabilitySets/web/providers/Microsoft.Maintenance/scheduledevents/{E1}"
    )
    value = grid_event(entry(), REBOOT, "westeurope")
    assert UUID(str(value.pop("id"))) != UUID(E1)
    assert value == {
        "topic": "/subscriptions/0000",
        "subject": id,
        "data": {
            "resourceInfo": {
                "id": id,
                "name": E1,
                "type": "microsoft.maintenance/scheduledEvents",
                "location": "westeurope",
                "properties": {
                    "EventId": E1,
                    "EventStatus": "Scheduled",
                    "EventType": "Reboot",
                    "ResourceType": "VirtualMachine",
                    "Resources": ["web-0", "web-1"],
                    "NotBefore": "Mon, 16 Nov 2026 09:30:00 GMT",
                    "Description": "Host server is undergoing maintenance.",
                    "EventSource": "Platform",
                    "DurationInSeconds": -1,
                    "ScheduledEventApiVersion": "2020-07-01",
                },
            },
            "operationalInfo": {"resourceEventTime": "2020-09-13T12:26:40.000Z"},
            "apiVersion": "2024-07-01",
        },
        "eventType": "Microsoft.ResourceNotifications.MaintenanceResources.ScheduledEventEmitted",
        "dataVersion": "3.0",
        "metadataVersion": "1",
        "eventTime": "2020-09-13T12:26:40.000Z",
    }


def test_a_line_has_one_id_and_two_lines_have_two() -> None:
    first = grid_message(entry(), REBOOT, "local", Template())
    assert first == grid_message(entry(), REBOOT, "local", Template())
    later = entry(Approved(event_id=E1, by=ME, at_ms=T0), ScopeId(f"{WEB_ID}2"))
    assert grid_message(later, REBOOT, "local", Template()).id != first.id


@pytest.mark.parametrize(
    ("scope_id", "end"),
    [
        ("s/g/vm/db", "virtualMachines/db"),
        ("s/g/scale-set/workers/3", "virtualMachineScaleSets/workers"),
        ("s/g/cloud-service/shop", "cloudServices/shop"),
    ],
)
def test_an_event_hangs_on_the_resource_that_it_is_about(scope_id: str, end: str) -> None:
    owner = f"/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/{end}"
    assert owner_id(ScopeId(scope_id)) == owner
    assert azure_id(ScopeId(scope_id), E1).startswith(f"{owner}/providers/Microsoft.Maintenance/")


async def test_each_status_is_told_once_and_approvals_are_not() -> None:
    async with notification_rig() as rig, receiving() as receiver:
        await subscribe(rig, receiver)
        id = await rig.reboot("web-0")
        await rig.approve(id, "web-0")
        await rig.pass_time(HOUR_MS)
        assert statuses(receiver) == ["Scheduled", "Started", "Completed"]
        infos = [message["data"]["resourceInfo"] for message in told(receiver)]
        assert [each["properties"]["NotBefore"] != "" for each in infos] == [True, False, False]
        assert {each["location"] for each in infos} == {rig.scope.roster.location}
        assert len({message["id"] for message in told(receiver)}) == 3


async def test_each_status_is_told_also_if_the_event_has_moved_on_by_then() -> None:
    async with notification_rig() as rig, receiving() as receiver:
        await subscribe(rig, receiver)
        await rig.stop()
        id = await rig.reboot("web-0")
        await rig.approve(id, "web-0")
        await rig.clock.advance(HOUR_MS)
        await rig.node()
        await rig.sender.idle()
        assert statuses(receiver) == ["Scheduled", "Started", "Completed"]


async def test_a_cancelled_event_is_told_as_canceled() -> None:
    async with notification_rig() as rig, receiving() as receiver:
        await subscribe(rig, receiver)
        id = await rig.reboot("web-0")
        await rig.engine.submit(rig.scope.id, Cancel(event_id=id), by=ME)
        await rig.sender.idle()
        assert statuses(receiver) == ["Scheduled", "Canceled"]


async def test_an_event_that_starts_at_once_was_never_scheduled() -> None:
    async with notification_rig() as rig, receiving() as receiver:
        await subscribe(rig, receiver)
        happened = Schedule(
            event_id=rig.engine.new_id(),
            type=EventType.REBOOT,
            targets=(WEB_0,),
            already_happened=True,
        )
        await rig.engine.submit(rig.scope.id, happened, by=ME)
        await rig.pass_time(HOUR_MS)
        assert statuses(receiver) == ["Started", "Completed"]


async def test_an_operation_that_policy_approves_is_not_told_as_scheduled_either() -> None:
    async with notification_rig() as rig, receiving() as receiver:
        policy = ChangePolicy(policy=Policy(approve_user_reboot=True))
        await rig.engine.submit(rig.scope.id, policy, by=ME)
        await subscribe(rig, receiver)
        await rig.operate(OperationKind.RESTART, "web-0")
        await rig.pass_time(HOUR_MS)
        assert statuses(receiver) == ["Started", "Completed"]


async def test_what_no_instance_sees_is_not_told() -> None:
    async with notification_rig() as rig, receiving() as receiver:
        await subscribe(rig, receiver)
        await rig.operate(OperationKind.DEALLOCATE, "web-0")
        await rig.pass_time(HOUR_MS)
        assert not receiver.requests


async def test_headers_are_those_of_event_grid_and_the_signature_stays() -> None:
    async with notification_rig() as rig, receiving() as receiver:
        target = await subscribe(rig, receiver)
        await rig.reboot("web-0")
        await rig.sender.idle()
        (request,) = receiver.requests
        headers = request.headers
        assert headers["content-type"] == "application/json; charset=utf-8"
        assert headers["aeg-event-type"] == "Notification"
        assert headers["webhook-id"] == request.json[0]["id"]
        timestamp_s = int(headers["webhook-timestamp"])
        assert timestamp_s == rig.clock.now() // SECOND_MS
        assert headers["webhook-signature"] == signature_of(
            target.secret, headers["webhook-id"], timestamp_s, request.body
        )


async def test_a_repetition_is_the_same_to_the_last_byte() -> None:
    answers = [503, 200]
    async with notification_rig() as rig, receiving(lambda _: answers.pop(0)) as receiver:
        await subscribe(rig, receiver)
        await rig.reboot("web-0")
        await rig.pass_time(2 * SECOND_MS)
        first, second = receiver.requests
        assert (first.body, first.headers["aeg-event-type"]) == (second.body, "Notification")
        assert second.headers["aeg-event-type"] == "Notification"


async def test_a_test_is_the_handshake_that_every_receiver_knows() -> None:
    async with notification_rig() as rig, receiving() as receiver:
        notifications = await rig.node()
        target = await notifications.create(draft(receiver.url), by=ME)
        assert (await notifications.test(target.id)).is_delivered
        (request,) = receiver.requests
        (message,) = request.json
        assert request.headers["aeg-event-type"] == "SubscriptionValidation"
        assert message["eventType"] == "Microsoft.EventGrid.SubscriptionValidationEvent"
        assert str(UUID(message["data"]["validationCode"])) == message["data"]["validationCode"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"filters": Filters(kinds=("Approved",))}, "Approved"),
        ({"kind": TargetKind.APPRISE, "url": "json://host"}, "webhooks"),
    ],
)
def test_what_event_grid_cannot_tell_is_refused(more: dict[str, Any], says: str) -> None:
    with pytest.raises(Refused, match=says) as refused:
        checked_target(draft(**more), id="n", new_secret="whsec_x", now=T0, by=ME)
    assert refused.value.code is Code.NOTIFICATION_INVALID


def test_a_message_that_waited_before_there_were_headers_can_still_be_read() -> None:
    old = json.dumps({"id": "1", "title": "t", "text": "x", "body": "{}"})
    assert msgspec.json.decode(old, type=Message).headers == {}
