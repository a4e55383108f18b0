"""Our own extension: the instances of an event tell each other that they are ready."""

import json

from fairwarning.core.commands import Operate, Schedule
from fairwarning.core.model import EventType, InstanceName, OperationKind
from tests.metadata.rig import Response, Rig

PATH = "/metadata/fairwarning/drained"


async def shared(rig: Rig) -> str:
    """web-0 and web-2 are in one update domain."""
    await rig.ask()
    targets = (InstanceName("web-0"), InstanceName("web-2"))
    id = rig.engine.new_id()
    await rig.submit(rig.web, Schedule(event_id=id, type=EventType.REBOOT, targets=targets))
    return id


async def report(rig: Rig, id: str, source: str) -> Response:
    body = json.dumps({"EventId": id.lower()}).encode()
    return await rig.ask(PATH, method="POST", body=body, source=source)


async def test_each_hears_who_is_ready_and_nothing_starts_by_it(rig: Rig) -> None:
    id = await shared(rig)
    incarnation = (await rig.ask()).incarnation
    first = await report(rig, id, "127.0.1.10")
    assert first.json() == {"EventId": id, "Drained": ["web-0"], "Waiting": ["web-2"]}
    await report(rig, id, "127.0.1.10")
    await report(rig, id, "127.0.1.12")
    found = await rig.ask(f"{PATH}?EventId={id}")
    assert found.json() == {"EventId": id, "Drained": ["web-0", "web-2"], "Waiting": []}
    document = await rig.ask()
    assert document.events[0]["EventStatus"] == "Scheduled"
    assert document.incarnation == incarnation


async def test_who_is_not_affected_cannot_be_waited_for(rig: Rig) -> None:
    id = await shared(rig)
    assert (await report(rig, id, "127.0.1.11")).status == 400
    assert (await report(rig, id, "127.0.2.10")).status == 404


async def test_what_no_instance_is_told_of_is_not_known_here_either(rig: Rig) -> None:
    await rig.ask()
    id = rig.engine.new_id()
    stop = Operate(event_id=id, kind=OperationKind.STOP, instance=InstanceName("web-0"))
    await rig.submit(rig.web, stop)
    event = (await rig.store.read(rig.web.id)).events[id]
    assert not event.announced
    assert (await rig.ask(f"{PATH}?EventId={id}")).status == 404


async def test_bad_questions(rig: Rig) -> None:
    assert (await rig.ask(PATH)).status == 400
    assert (await rig.ask(f"{PATH}?EventId=x")).status == 404
    for body in (b"{}", b"[]", b'"x"', b"{", b'{"EventId":"x"}'):
        assert (await rig.ask(PATH, method="POST", body=body)).status == 400
    assert (await rig.ask(PATH, method="PUT")).status == 405
    assert (await rig.ask(PATH, method="POST", body=b'{"EventId":5}', headers={})).status == 400
