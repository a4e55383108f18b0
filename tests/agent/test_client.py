"""A service that is away leaves a trace: when it began, why, when it was over, how long it was."""

import logging

import pytest

from fairwarning.agent.client import AgentClient, NotFairwarning, Outages
from fairwarning.agent.metrics import Metrics
from fairwarning.client import EventsUnavailable, Seen
from fairwarning.testing import Server
from tests.agent.strange_server import answering
from tests.agent.test_http_listener import Watch


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(each.levelname, each.message) for each in caplog.records if "service" in each.message]


def test_two_lines_however_long_it_is(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    watch = Watch()
    outages = Outages(watch)
    outages.polled("", is_answer=True)
    for _ in range(3):
        outages.polled("it answered 503", is_answer=False)
        outages.polled("", is_answer=False)
        watch.s += 25
    outages.polled("", is_answer=True)
    outages.polled("", is_answer=True)
    assert told(caplog) == [
        ("WARNING", "the service tells nothing: it answered 503"),
        ("INFO", "the service answers again, after 1 min 15 s"),
    ]


async def test_an_agent_tells_each_outage(
    fairwarning: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    url = fairwarning.vm("web-0").url
    async with AgentClient(url, seen=Seen(), metrics=Metrics()) as service:
        for _ in range(2):
            fairwarning.fault("status", "web-0", status=503, count=2)
            for _ in range(2):
                with pytest.raises(EventsUnavailable):
                    await service.get()
            await service.get()
    began = ("WARNING", "the service tells nothing: the service answered 503")
    assert told(caplog) == [began, ("INFO", "the service answers again, after 0 s")] * 2


@pytest.mark.parametrize(
    ("status", "body", "raised"),
    [
        *((status, b"", NotFairwarning) for status in (400, 404, 405, 501)),
        (200, b"<html>", NotFairwarning),
        (200, b'["web-1"]', NotFairwarning),
        (200, b'{"error": 1}', NotFairwarning),
        *((status, b"", EventsUnavailable) for status in (429, 500, 503)),
    ],
)
async def test_another_service_does_not_know_who_is_ready_and_one_that_is_away_is_asked_again(
    status: int, body: bytes, raised: type[Exception]
) -> None:
    async with (
        answering(status, body) as url,
        AgentClient(url, seen=Seen(), metrics=Metrics()) as service,
    ):
        with pytest.raises(raised):
            await service.waiting("E1")


async def test_a_service_that_nobody_runs_is_away_and_may_know_who_is_ready_later() -> None:
    async with AgentClient("http://127.0.0.1:9", seen=Seen(), metrics=Metrics()) as service:
        with pytest.raises(EventsUnavailable):
            await service.waiting("E1")
