"""An approval without the Metadata header is refused, and the operator learns what accepts it."""

import json
import logging

import pytest

from fairwarning.metadata import endpoint_state
from fairwarning.metadata.request_watchers import ObservedRequest
from tests.metadata.rig import PATH, Rig

BODY = json.dumps({"StartRequests": [{"EventId": "A"}]}).encode()


@pytest.mark.parametrize(
    ("version", "status"), [("2017-03-01", 400), ("2017-08-01", 400), ("2020-07-01", 400)]
)
async def test_the_log_names_the_option_once_for_each_instance(
    rig: Rig, caplog: pytest.LogCaptureFixture, version: str, status: int
) -> None:
    caplog.set_level(logging.WARNING)
    path = PATH.replace("2020-07-01", version)
    for source in ("127.0.1.10", "127.0.1.10", "127.0.1.11"):
        found = await rig.ask(path, source=source, method="POST", headers={}, body=BODY)
        assert found.status == status
    said = [each.getMessage() for each in caplog.records if each.name == endpoint_state.__name__]
    if version == "2017-03-01":
        assert said == [], "it is accepted there, and refused for its event only"
    else:
        assert [each.split(" was")[0] for each in said] == [
            "an approval of web-0",
            "an approval of web-1",
        ]
        assert all("--lenient-post" in each for each in said)


async def test_a_poll_and_a_stranger_are_not_told_of(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    assert (await rig.ask(headers={}, source="127.0.1.10")).status == 400
    await rig.ask(method="POST", headers={}, body=BODY, source="127.0.9.9")
    assert "--lenient-post" not in caplog.text


async def test_only_who_wants_to_hear_of_refusals_does(rig: Rig) -> None:
    heard: list[ObservedRequest] = []
    everything: list[ObservedRequest] = []
    assert rig.server is not None
    rig.server.watch(heard.append, hears_refused=True)
    rig.server.watch(everything.append)
    await rig.ask(method="POST", headers={}, body=BODY, source="127.0.1.10")
    assert [(each.kind, each.hint) for each in heard] == [("approve", endpoint_state.HINT)]
    assert everything == []


async def test_the_memory_of_who_was_told_is_bounded(
    rig: Rig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_state, "TOLD_MAX", 2)
    for last in (10, 11, 10, 12, 12, 10):
        await rig.ask(source=f"127.0.1.{last}", method="POST", headers={}, body=BODY)
    said = [each.getMessage() for each in caplog.records if each.name == endpoint_state.__name__]
    names = [each.split()[3] for each in said]
    assert names == ["web-0", "web-1", "web-2", "web-0"]
