"""The endpoint misbehaves on request, in test fleets only, and is itself again afterwards."""

import asyncio
import json
import re
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from fairwarning.core.api_versions import NEWEST, VERSIONS, ApiVersion
from fairwarning.core.faults import (
    UNKNOWN_FIELD,
    UNKNOWN_TYPE,
    Fault,
    FaultKind,
    Part,
    broken_document,
)
from fairwarning.core.instants import MINUTE_MS, later
from fairwarning.core.model import InstanceName
from tests.metadata.rig import PATH, Rig, request


def set_fault(rig: Rig, kind: FaultKind, **more: Any) -> Fault:
    return rig.faults.set(Fault(id="", kind=kind, **more))


async def approve(rig: Rig, id: str) -> int:
    body = b'{"StartRequests":[{"EventId":"%s"}]}' % id.encode()
    return (await rig.ask(method="POST", body=body)).status


@pytest.mark.parametrize("status", [410, 429, 500, 503])
async def test_a_status_comes_as_often_as_asked_and_then_no_more(rig: Rig, status: int) -> None:
    await rig.ask()
    set_fault(rig, FaultKind.STATUS, status=status, count=2)
    found = [await rig.ask() for _ in range(3)]
    assert [each.status for each in found] == [status, status, 200]
    assert "Events" not in found[0].json()
    assert found[0].headers.get("retry-after") == ("1" if status in (429, 503) else None)
    assert rig.faults.list() == []
    assert rig.faults.struck == {"status": 2}


async def test_a_kept_connection_meets_the_fault_between_two_equal_polls(rig: Rig) -> None:
    """The bytes of the poll are remembered by then; the fault must strike all the same."""
    client = await rig.connect()
    found = []
    for number in range(6):
        if number == 3:
            set_fault(rig, FaultKind.STATUS, status=500, count=1)
        await client.send(request())
        found.append((await client.receive()).status)
    assert found == [200, 200, 200, 500, 200, 200]


async def test_an_empty_body(rig: Rig) -> None:
    set_fault(rig, FaultKind.EMPTY, count=1)
    found = await rig.ask()
    assert (found.status, found.body) == (200, b"")


async def test_a_reset_is_a_reset_and_not_an_end(rig: Rig) -> None:
    set_fault(rig, FaultKind.RESET, count=1)
    client = await rig.connect()
    await client.send(request())
    with pytest.raises(ConnectionResetError):
        await client.reader.read(1)
    assert (await rig.ask()).status == 200


async def test_only_the_named_instance_is_struck(rig: Rig) -> None:
    set_fault(rig, FaultKind.STATUS, instances=(InstanceName("web-1"),))
    assert (await rig.ask(source="127.0.1.10")).status == 200
    assert (await rig.ask(source="127.0.1.11")).status == 503


async def test_a_time_window_by_the_servers_clock(rig: Rig) -> None:
    start = later(rig.clock.now(), MINUTE_MS)
    set_fault(rig, FaultKind.STATUS, from_ms=start, until_ms=later(start, MINUTE_MS))
    assert (await rig.ask()).status == 200
    await rig.clock.advance(MINUTE_MS)
    assert (await rig.ask()).status == 503
    await rig.clock.advance(MINUTE_MS)
    assert (await rig.ask()).status == 200
    assert rig.faults.list() == []


async def test_a_probability_strikes_some(rig: Rig) -> None:
    set_fault(rig, FaultKind.STATUS, probability=0.5)
    found = [(await rig.ask()).status for _ in range(30)]
    assert 5 < found.count(503) < 25


async def test_a_slow_answer_is_right_and_delays_nobody_else(rig: Rig) -> None:
    right = (await rig.ask()).body
    set_fault(rig, FaultKind.SLOW, delay_ms=500, instances=(InstanceName("web-0"),), count=1)
    client = await rig.connect()
    await client.send(request())
    waiting = asyncio.create_task(client.receive())
    assert (await rig.ask(source="127.0.1.11")).body == right
    assert not waiting.done()
    assert (await waiting).body == right


async def test_a_slow_body_begins_at_once_and_arrives_whole(rig: Rig) -> None:
    right = (await rig.ask()).body
    set_fault(rig, FaultKind.SLOW_BODY, delay_ms=200, count=1)
    client = await rig.connect()
    await client.send(request())
    head = await client.reader.readuntil(b"\r\n\r\n")
    assert b"200 OK" in head
    first = await client.reader.read(1000)
    assert len(first) < len(right)
    assert first + await client.reader.readexactly(len(right) - len(first)) == right


async def test_a_slow_body_takes_its_delay_and_not_longer(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, pauses = asyncio.sleep, list[float]()

    async def sleep(delay: float) -> None:
        """Only the pauses of the fault are so long, and they are over at once."""
        if delay > 5:
            pauses.append(delay)
        await real(0 if delay > 5 else delay)

    await rig.ask()
    set_fault(rig, FaultKind.SLOW_BODY, delay_ms=100_000, count=1)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert (await rig.ask()).status == 200
    assert 80 < sum(pauses) <= 100


async def test_iso_dates(rig: Rig) -> None:
    await rig.ask()
    await rig.schedule()
    set_fault(rig, FaultKind.ISO_DATES)
    found = (await rig.ask()).events[0]["NotBefore"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(found))


async def test_dotnet_dates(rig: Rig) -> None:
    await rig.ask()
    await rig.schedule()
    right = parsedate_to_datetime(str((await rig.ask()).events[0]["NotBefore"]))
    set_fault(rig, FaultKind.DOTNET_DATES)
    found = str((await rig.ask()).events[0]["NotBefore"])
    assert re.fullmatch(r"\d{1,2}/\d{1,2}/\d{4} \d{1,2}:\d\d:\d\d [AP]M \+00:00", found)
    assert datetime.strptime(found, "%m/%d/%Y %I:%M:%S %p %z") == right


@pytest.mark.parametrize(
    ("plain", "dotnet"),
    [
        ("Mon, 11 Apr 2022 22:26:58 GMT", "4/11/2022 10:26:58 PM +00:00"),
        ("Mon, 11 Apr 2022 00:06:08 GMT", "4/11/2022 12:06:08 AM +00:00"),
        ("Sun, 11 Dec 2022 12:00:00 GMT", "12/11/2022 12:00:00 PM +00:00"),
        ("", ""),
    ],
)
def test_a_date_as_dotnet_writes_it(plain: str, dotnet: str) -> None:
    document = json.dumps({"DocumentIncarnation": 1, "Events": [{"NotBefore": plain}]}).encode()
    found = json.loads(
        broken_document(document, FaultKind.DOTNET_DATES, instance="web-0", version=NEWEST)
    )
    assert found["Events"] == [{"NotBefore": dotnet}]


async def test_an_unknown_type_and_unknown_fields(rig: Rig) -> None:
    await rig.ask()
    await rig.schedule()
    set_fault(rig, FaultKind.UNKNOWN_TYPE, count=1)
    types = [each["EventType"] for each in (await rig.ask()).events]
    assert types == ["Reboot", UNKNOWN_TYPE]
    set_fault(rig, FaultKind.UNKNOWN_FIELDS, count=1)
    found = await rig.ask()
    assert UNKNOWN_FIELD in found.json()
    assert UNKNOWN_FIELD in found.events[0]


@pytest.mark.parametrize("version", VERSIONS, ids=lambda each: each.name)
async def test_an_event_of_an_unknown_type_has_all_fields_of_the_version(
    rig: Rig, version: ApiVersion
) -> None:
    await rig.ask()
    await rig.schedule()
    set_fault(rig, FaultKind.UNKNOWN_TYPE)
    real, made_up = (await rig.ask(PATH.replace(NEWEST.name, version.name))).events
    assert [*made_up] == [*real]
    assert made_up["Resources"] == real["Resources"]


async def test_an_event_that_loses_resources_is_in_a_newer_document() -> None:
    document = {"DocumentIncarnation": 3, "Events": [{"Resources": ["web-1", "web-0"]}]}
    found = broken_document(
        json.dumps(document).encode(),
        FaultKind.FEWER_RESOURCES,
        instance="web-0",
        version=NEWEST,
    )
    assert json.loads(found) == {"DocumentIncarnation": 4, "Events": [{"Resources": ["web-0"]}]}


async def test_incarnation_reset_and_duplicates(rig: Rig) -> None:
    await rig.ask()
    await rig.schedule()
    set_fault(rig, FaultKind.INCARNATION_RESET, count=1)
    assert (await rig.ask()).incarnation == 1
    set_fault(rig, FaultKind.DUPLICATE, count=1)
    ids = [each["EventId"] for each in (await rig.ask()).events]
    assert len(ids) == 2
    assert len(set(ids)) == 1


async def test_a_stale_document_is_that_of_when_the_fault_was_set(rig: Rig) -> None:
    await rig.ask()
    fault = set_fault(rig, FaultKind.STALE)
    await rig.schedule()
    assert (await rig.ask()).events == []
    rig.faults.clear(fault.id)
    assert len((await rig.ask()).events) == 1


async def test_a_stale_document_stays_the_same_when_other_faults_come_and_go(rig: Rig) -> None:
    await rig.ask()
    set_fault(rig, FaultKind.STALE)
    await rig.schedule()
    other = set_fault(rig, FaultKind.STATUS, on=Part.APPROVE)
    assert (await rig.ask()).events == []
    rig.faults.clear(other.id)
    assert (await rig.ask()).events == []


async def test_faults_of_approvals_leave_polls_alone(rig: Rig) -> None:
    await rig.ask()
    id = await rig.schedule()
    set_fault(rig, FaultKind.STATUS, on=Part.APPROVE, count=1)
    assert (await rig.ask()).status == 200
    assert await approve(rig, id) == 503
    assert (await rig.ask()).events[0]["EventStatus"] == "Scheduled"
    assert await approve(rig, id) == 200


async def test_a_real_fleet_has_no_faults() -> None:
    rig = Rig(test=False)
    await rig.start()
    set_fault(rig, FaultKind.STATUS)
    assert (await rig.ask()).status == 200
    await rig.stop()


async def test_the_fast_path_is_back_when_the_last_fault_is_gone(rig: Rig) -> None:
    assert rig.server is not None
    fault = set_fault(rig, FaultKind.SLOW, delay_ms=0)
    await rig.ask()
    known = rig.server._state.known_polls
    assert not known.by_bytes
    rig.faults.clear(fault.id)
    await rig.ask()
    assert known.by_bytes
