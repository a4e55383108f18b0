"""What probes, Prometheus and other agents are told."""

import asyncio
import socket

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairwarning.agent.http_listener import CannotListen, Listener
from fairwarning.agent.metrics import STALE_S, Metrics


class Watch:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


async def ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


def listener(metrics: Metrics) -> Listener:
    return Listener(metrics, lambda event: ["web-0"] if event == "E1" else [])


def test_ready_means_that_the_service_answers_and_the_state_is_kept() -> None:
    watch = Watch()
    metrics = Metrics(watch)
    probes = listener(metrics)
    assert probes.answer("GET /readyz HTTP/1.1")[0] == 503
    assert probes.answer("GET /healthz HTTP/1.1")[0] == 200
    metrics.polled(is_answer=True, is_failure=False)
    assert probes.answer("GET /readyz HTTP/1.1")[0] == 200
    metrics.is_state_written = False
    assert probes.answer("GET /readyz HTTP/1.1")[2] == "the state cannot be written\n"
    metrics.is_state_written = True
    watch.s = STALE_S + 1
    assert "for 121 s" in probes.answer("GET /readyz HTTP/1.1")[2]


def test_prometheus_can_read_the_metrics() -> None:
    watch = Watch()
    metrics = Metrics(watch)
    metrics.polled(is_answer=True, is_failure=False)
    metrics.polled(is_answer=False, is_failure=True)
    metrics.count("events_total", type='of "tomorrow"\n\\', phase="scheduled")
    metrics.gauge("undo_owed", 2)
    watch.s = 7.5
    families = {each.name: each for each in text_string_to_metric_families(metrics.text())}
    values = {name: [each.value for each in family.samples] for name, family in families.items()}
    assert values["fairwarning_agent_polls"] == [2]
    assert values["fairwarning_agent_poll_failures"] == [1]
    assert values["fairwarning_agent_undo_owed"] == [2]
    assert values["fairwarning_agent_state_writes_failed"] == [0]
    assert values["fairwarning_agent_last_document_age_seconds"] == [7.5]
    (sample,) = families["fairwarning_agent_events"].samples
    assert sample.labels["type"] == 'of "tomorrow"\n\\'


async def test_over_the_wire() -> None:
    probes = listener(Metrics())
    await probes.start("127.0.0.1", 0)
    answer = await ask(probes.port, b"GET /drained?EventId=e1 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b'{"EventId": "E1", "Drained": ["web-0"]}')
    assert b" 404 " in await ask(probes.port, b"GET / HTTP/1.1\r\n\r\n")
    assert b" 405 " in await ask(probes.port, b"POST /metrics HTTP/1.1\r\n\r\n")
    assert b" 400 " in await ask(probes.port, b"GET /drained HTTP/1.1\r\n\r\n")
    twice = b"GET /drained?EventId=E1&EventId=E2 HTTP/1.1\r\n\r\n"
    assert b" 400 " in await ask(probes.port, twice)
    assert await ask(probes.port, b"x" * 20_000 + b"\r\n\r\n") == b""
    await probes.stop()


async def test_an_address_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(CannotListen, match="set `listen`"):
            await listener(Metrics()).start(*taken.getsockname())


def test_two_minutes_without_an_answer_are_still_no_outage() -> None:
    watch = Watch()
    metrics = Metrics(watch)
    metrics.polled(is_answer=True, is_failure=False)
    watch.s = STALE_S
    assert metrics.not_ready == ""


def test_the_samples_of_a_metric_have_an_order() -> None:
    metrics = Metrics()
    for outcome in ("failed", "done", "failed"):
        metrics.count("approvals_total", outcome=outcome)
    samples = [
        each for each in metrics.text().splitlines() if each.startswith("fairwarning_agent_a")
    ]
    assert samples == [
        'fairwarning_agent_approvals_total{outcome="done"} 1',
        'fairwarning_agent_approvals_total{outcome="failed"} 2',
    ]
