"""POST: every way in which real clients approve."""

import json

import pytest

from fairwarning.core.model import EventType, Phase
from fairwarning.metadata.requests import read_event_ids
from tests.metadata.rig import PATH, Rig

OLD = "/metadata/scheduledevents?api-version=2017-03-01"


def body(*ids: str, **more: object) -> bytes:
    return json.dumps({**more, "StartRequests": [{"EventId": id} for id in ids]}).encode()


async def phase(rig: Rig, id: str) -> Phase:
    _, event = await rig.store.find_event(id)  # type: ignore[arg-type]
    return event.phase


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/x-www-form-urlencoded",
        "text/plain; charset=utf-8",
        "nonsense",
    ],
)
async def test_the_body_is_json_whatever_its_type_says(rig: Rig, content_type: str) -> None:
    id = await rig.schedule()
    headers = {"Metadata": "true", "Content-Type": content_type}
    response = await rig.ask(method="POST", headers=headers, body=body(id))
    assert (response.status, response.body) == (200, b"")
    assert response.headers["content-length"] == "0"
    assert await phase(rig, id) is Phase.STARTED


@pytest.mark.parametrize("incarnation", ["5", 5, None, {"x": 1}])
async def test_the_incarnation_may_be_anything(rig: Rig, incarnation: object) -> None:
    id = await rig.schedule()
    sent = body(id, DocumentIncarnation=incarnation)
    assert (await rig.ask(method="POST", body=sent)).status == 200


async def test_approving_again_is_fine_at_any_time_and_under_any_version(rig: Rig) -> None:
    id = await rig.schedule()
    await rig.ask()
    for path in (PATH, "/metadata/scheduledevents?api-version=2019-08-01"):
        assert (await rig.ask(path, method="POST", body=body(id))).status == 200
    before = (await rig.ask()).incarnation
    assert (await rig.ask(method="POST", body=body(id), source="127.0.1.12")).status == 200
    assert (await rig.ask()).incarnation == before
    await rig.clock.advance(60_000)
    assert await phase(rig, id) is Phase.COMPLETED
    assert (await rig.ask(method="POST", body=body(id))).status == 200
    await rig.clock.advance(48 * 3600_000)
    assert (await rig.ask(method="POST", body=body(id))).status == 200


async def test_several_events_and_lower_case_ids(rig: Rig) -> None:
    ids = [await rig.schedule("web-0"), await rig.schedule("web-2")]
    response = await rig.ask(method="POST", body=body(*(id.lower() for id in ids), ids[0]))
    assert response.status == 200
    assert [await phase(rig, id) for id in ids] == [Phase.STARTED, Phase.STARTED]


async def test_the_first_version_needs_no_header_and_later_ones_do(rig: Rig) -> None:
    id = await rig.schedule()
    assert (await rig.ask(PATH, method="POST", headers={}, body=body(id))).status == 400
    assert await phase(rig, id) is Phase.SCHEDULED
    assert (await rig.ask(OLD, method="POST", headers={}, body=body(id))).status == 200
    assert await phase(rig, id) is Phase.STARTED
    assert (await rig.ask(OLD, headers={})).status == 400


async def test_an_unknown_id_refuses_the_whole_request(rig: Rig) -> None:
    known = await rig.schedule("web-0")
    foreign = await rig.schedule("workers_0", EventType.FREEZE)
    for other in (foreign, "00000000-0000-4000-8000-00000000FFFF", "x", ""):
        response = await rig.ask(method="POST", body=body(known, other))
        assert response.status == 400
        assert "nothing was approved" in str(response.json()["error"])
    assert await phase(rig, known) is Phase.SCHEDULED
    assert await phase(rig, foreign) is Phase.SCHEDULED


BAD_BODIES = [
    b"",
    b"{",
    b"null",
    b"[]",
    b'"x"',
    b"{}",
    b'{"StartRequests":null}',
    b'{"StartRequests":[]}',
    b'{"StartRequests":{}}',
    b'{"StartRequests":[1]}',
    b'{"StartRequests":[{}]}',
    b'{"StartRequests":[{"EventId":1}]}',
    b'{"StartRequests":[{"EventId":null}]}',
    b'{"StartRequests":[{"EventId":["x"]}]}',
    b'{"startrequests":[{"EventId":"x"}]}',
    b"\xff\xfe",
    b"[" * 20_000,
    b'{"StartRequests":' + b"[" * 20_000,
    body(*(str(number) for number in range(101))),
]


@pytest.mark.parametrize("sent", BAD_BODIES, ids=lambda each: repr(each[:24]))
async def test_a_bad_body_changes_nothing(rig: Rig, sent: bytes) -> None:
    id = await rig.schedule()
    response = await rig.ask(method="POST", body=sent)
    assert response.status == 400
    assert "StartRequests" in str(response.json()["error"])
    assert await phase(rig, id) is Phase.SCHEDULED


def test_ids_are_read_once_each_and_in_upper_case() -> None:
    id = "00000000-0000-4000-8000-00000000ABCD"
    sent = json.dumps({"StartRequests": [{"EventId": id.lower()}, {"EventId": f" {id} "}]})
    assert read_event_ids(sent.encode()) == (id,)
    assert read_event_ids(b'{"StartRequests":[{"EventId":"nonsense"}]}') == ("",)


async def test_expect_100_continue_with_the_body_after_it(rig: Rig) -> None:
    id = await rig.schedule()
    sent = body(id)
    client = await rig.connect()
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nMetadata:true\r\n"
        f"Expect: 100-continue\r\nContent-Length: {len(sent)}\r\n\r\n"
    )
    await client.send(head.encode())
    assert (await client.receive()).status == 100
    await client.send(sent)
    assert (await client.receive()).status == 200
    await client.send(head.encode() + sent)
    assert (await client.receive()).status == 100
    assert (await client.receive()).status == 200


async def test_a_chunked_body(rig: Rig) -> None:
    id = await rig.schedule()
    sent = body(id)
    client = await rig.connect()
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nMetadata: true\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    await client.send(head.encode())
    for piece in (sent[:10], sent[10:]):
        await client.send(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
    await client.send(b"0\r\n\r\n")
    assert (await client.receive()).status == 200
