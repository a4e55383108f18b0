"""The bytes on the wire, for each api-version."""

import json

import pytest
from msgspec.structs import replace

from fairwarning.core.api_versions import BY_NAME, VERSIONS
from fairwarning.core.commands import Operate, Schedule
from fairwarning.core.document import document_tag, render
from fairwarning.core.instants import Instant, format_rfc1123
from fairwarning.core.model import EventType, InstanceName, OperationKind, Phase
from fairwarning.core.resources import CloudService, expand
from tests.core.builders import E1, E2, T0, after, names, web, workers

BASE = ["EventId", "EventStatus", "EventType", "ResourceType", "Resources", "NotBefore"]
FIELDS = {
    "2017-03-01": BASE,
    "2017-08-01": BASE,
    "2017-11-01": BASE,
    "2019-01-01": BASE,
    "2019-04-01": [*BASE, "Description"],
    "2019-08-01": [*BASE, "Description", "EventSource"],
    "2020-07-01": [*BASE, "Description", "EventSource", "DurationInSeconds"],
}
FREEZE = Schedule(event_id=E1, type=EventType.FREEZE, targets=names("web-0", "web-2"))


def test_the_current_version_to_the_byte() -> None:
    assert render(after(web(), FREEZE), BY_NAME["2020-07-01"]) == (
        b'{"DocumentIncarnation":2,"Events":[{'
        b'"EventId":"00000000-0000-4000-8000-000000000001","EventStatus":"Scheduled",'
        b'"EventType":"Freeze","ResourceType":"VirtualMachine","Resources":["web-0","web-2"],'
        b'"NotBefore":"Sun, 13 Sep 2020 12:41:40 GMT",'
        b'"Description":"Host server is undergoing maintenance.",'
        b'"EventSource":"Platform","DurationInSeconds":5}]}'
    )


def test_documents_of_one_number_and_another_content_have_other_tags() -> None:
    """The store may have lost a document that was shown, and count it again with another event."""
    event = after(web(), FREEZE).events[E1]
    others = (
        replace(event, id=E2),
        replace(event, phase=Phase.STARTED),
        replace(event, created_ms=Instant(event.created_ms + 1)),
        replace(event, not_before_ms=Instant(event.not_before_ms + 1000)),
    )
    tags = {document_tag(T0, 2, [each]) for each in (event, *others)}
    tags |= {document_tag(T0, 2, []), document_tag(T0, 3, []), document_tag(Instant(T0 + 1), 2, [])}
    assert len(tags) == 8


def test_an_empty_document() -> None:
    assert render(web(), BY_NAME["2017-08-01"]) == b'{"DocumentIncarnation":1,"Events":[]}'


@pytest.mark.parametrize("version", VERSIONS, ids=lambda each: each.name)
def test_each_version_has_its_fields_in_order(version: object) -> None:
    name = version.name  # type: ignore[attr-defined]
    (event,) = json.loads(render(after(web(), FREEZE), BY_NAME[name]))["Events"]
    assert list(event) == FIELDS[name]


def test_the_first_version_writes_an_underscore_but_not_before_roles() -> None:
    first = BY_NAME["2017-03-01"]
    (event,) = json.loads(render(after(web(), FREEZE), first))["Events"]
    assert event["Resources"] == ["_web-0", "_web-2"]
    (shop,) = expand(CloudService(name="shop", roles={"FrontEnd": 1}))
    role = Schedule(event_id=E1, type=EventType.FREEZE, targets=names("FrontEnd_IN_0"))
    (event,) = json.loads(render(after(shop, role), first))["Events"]
    assert event["Resources"] == ["FrontEnd_IN_0"]


@pytest.mark.parametrize(
    ("event_type", "since"),
    [(EventType.PREEMPT, "2017-11-01"), (EventType.TERMINATE, "2019-01-01")],
)
def test_a_version_does_not_show_types_that_it_did_not_have(
    event_type: EventType, since: str
) -> None:
    command = Schedule(event_id=E1, type=event_type, targets=names("web-0"))
    scope = after(web(test=True), command)
    shown = [v.name for v in VERSIONS if json.loads(render(scope, v))["Events"]]
    assert shown == [v.name for v in VERSIONS if v.name >= since]


def test_not_before_is_empty_once_started() -> None:
    command = Schedule(
        event_id=E1, type=EventType.REBOOT, targets=names("web-0"), already_happened=True
    )
    (event,) = json.loads(render(after(web(), command), BY_NAME["2020-07-01"]))["Events"]
    assert (event["EventStatus"], event["NotBefore"]) == ("Started", "")
    assert event["Description"] == "Virtual machine has encountered a failure."


def test_a_user_operation_says_so() -> None:
    command = Operate(event_id=E2, kind=OperationKind.RESTART, instance=InstanceName("workers_0"))
    (event,) = json.loads(render(after(workers(), command), BY_NAME["2020-07-01"]))["Events"]
    assert (event["EventSource"], event["DurationInSeconds"]) == ("User", -1)
    assert event["Description"].startswith("Virtual machine is going to be restarted")


def test_dates_are_rfc_1123() -> None:
    assert format_rfc1123(Instant(1_626_929_417_999)) == "Thu, 22 Jul 2021 04:50:17 GMT"
