"""What an instance is told while the store is away, when a bug strikes, and afterwards."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairwarning.core.faults import Fault, FaultKind
from fairwarning.core.model import Phase
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.transitions import Approved
from fairwarning.engine.protocols import StoreDown
from tests.engine.harness import FailingStore
from tests.metadata.rig import PATH, Rig, request

DRAINED = "/metadata/fairwarning/drained"


class Outage(Rig):
    store: FailingStore

    def __init__(self) -> None:
        super().__init__(make_store=FailingStore)

    async def phase(self, id: str) -> Phase:
        _, event = await self.store.find_event(id)  # type: ignore[arg-type]
        return event.phase

    def break_with(self, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
        async def submit(*args: object, **named: object) -> None:
            raise error

        monkeypatch.setattr(self.engine, "submit", submit)


@pytest.fixture
async def outage() -> AsyncIterator[Outage]:
    found = Outage()
    await found.start()
    yield found
    await found.stop()


def body(id: str) -> bytes:
    return json.dumps({"StartRequests": [{"EventId": id}]}).encode()


async def test_a_first_poll_is_told_to_come_again_and_its_connection_stays(outage: Outage) -> None:
    client = await outage.connect()
    outage.store.is_down = True
    for path in (PATH, f"{PATH}&wait=1", f"/metadata/fairwarning/drained?EventId={'0' * 36}"):
        await client.send(request(path))
        answer = await client.receive()
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert "connection" not in answer.headers
    outage.store.is_down = False
    await client.send(request())
    assert (await client.receive()).incarnation == 1


async def test_an_approval_during_an_outage_is_not_lost_silently(outage: Outage) -> None:
    id = await outage.schedule()
    await outage.ask()
    outage.store.is_down = True
    assert (await outage.ask(method="POST", body=body(id))).status == 503
    drained = json.dumps({"EventId": id}).encode()
    assert (await outage.ask(DRAINED, method="POST", body=drained)).status == 503
    assert (await outage.ask()).status == 200
    assert await outage.phase(id) is Phase.SCHEDULED
    outage.store.is_down = False
    assert (await outage.ask(method="POST", body=body(id))).status == 200
    assert await outage.phase(id) is Phase.STARTED


async def test_an_instance_learns_about_itself_from_memory(outage: Outage) -> None:
    path = "/metadata/instance?api-version=2021-02-01"
    before = await outage.ask(path)
    outage.store.is_down = True
    during = await outage.ask(path)
    assert (during.status, during.json()) == (200, before.json())


async def test_of_several_approvals_an_outage_leaves_none_done(
    outage: Outage, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [await outage.schedule(name) for name in ("web-0", "web-1")]
    await outage.ask()
    transact, has_approved = outage.store.transact, False

    async def once(*args: Any, **named: Any) -> Any:
        """The store goes away after the first approval."""
        nonlocal has_approved
        if has_approved:
            raise StoreDown("gone")
        receipt = await transact(*args, **named)
        has_approved = any(isinstance(each, Approved) for each in receipt.transitions)
        return receipt

    monkeypatch.setattr(outage.store, "transact", once)
    requests = {"StartRequests": [{"EventId": id} for id in ids]}
    answer = await outage.ask(method="POST", body=json.dumps(requests).encode())
    approved = [(await outage.store.find_event(id))[1].is_approved for id in ids]
    assert (answer.status, approved) == (200, [True, True])


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_bug_is_answered_and_logged_and_ends_the_connection(
    outage: Outage, method: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    id = await outage.schedule()
    if method == "POST":
        await outage.ask()
    outage.break_with(ZeroDivisionError(), monkeypatch)
    client = await outage.connect()
    await client.send(request(method=method, body=body(id) if method == "POST" else b""))
    answer = await client.receive()
    assert (answer.status, answer.headers["connection"]) == (500, "close")
    assert await client.is_closed()
    assert "a request broke" in caplog.text
    caplog.clear()
    monkeypatch.undo()
    assert (await outage.ask()).status == 200


async def test_who_is_deleted_while_it_approves_is_told_that_it_is_nobody(
    outage: Outage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    id = await outage.schedule()
    await outage.ask()
    outage.break_with(Refused(Code.NOT_IN_SCOPE, "it is gone"), monkeypatch)
    assert (await outage.ask(method="POST", body=body(id))).status == 404
    outage.break_with(Refused(Code.EVENT_FINISHED, "it is over"), monkeypatch)
    assert (await outage.ask(method="POST", body=body(id))).status == 200
    outage.break_with(Refused(Code.UNKNOWN_EVENT, "it was forgotten"), monkeypatch)
    assert (await outage.ask(method="POST", body=body(id))).status == 200
    outage.break_with(Refused(Code.UNKNOWN_SCOPE, "a bug"), monkeypatch)
    assert (await outage.ask(method="POST", body=body(id))).status == 500
    caplog.clear()


@pytest.mark.parametrize("kind", [FaultKind.SLOW, FaultKind.DUPLICATE])
async def test_an_injected_fault_does_not_hide_an_outage(outage: Outage, kind: FaultKind) -> None:
    outage.faults.set(Fault(id="", kind=kind, delay_ms=0))
    outage.store.is_down = True
    assert (await outage.ask()).status == 503
    outage.store.is_down = False
    assert (await outage.ask()).status == 200


async def test_a_bug_behind_an_injected_fault_is_a_bug(
    outage: Outage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    outage.faults.set(Fault(id="", kind=FaultKind.SLOW, delay_ms=0))
    outage.break_with(ZeroDivisionError(), monkeypatch)
    assert (await outage.ask()).status == 500
    caplog.clear()
