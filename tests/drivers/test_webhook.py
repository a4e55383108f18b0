"""The webhook driver with a real web service."""

import asyncio
import logging

import pytest

from fairwarning.core.instants import SECOND_MS
from fairwarning.core.webhook_signatures import signature_of
from fairwarning.drivers import web_requests, webhook
from fairwarning.drivers.web_requests import ANSWER_BYTES_MAX
from fairwarning.drivers.webhook import WebhookDriver
from fairwarning.engine.clocks import VirtualClock
from fairwarning.engine.protocols import DriverFailed, Found, LeaseLost
from tests.core.builders import E1, T0
from tests.drivers.orders import HeldLease, order
from tests.drivers.service import Service, service, states
from tests.support.patience import HANG_S

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


async def carry_out(it: Service, *, attempt: int = 1, **more: str) -> int:
    """Returns how many virtual milliseconds it took."""
    clock = VirtualClock(T0)
    alarm = clock.alarm()
    asked = order({"url": it.url} | more, attempt=attempt)
    work = asyncio.create_task(WebhookDriver(clock).do(asked, alarm, HeldLease()))
    work.add_done_callback(lambda _: alarm.close())
    while not work.done():
        await clock.settle()
        await clock.advance_to(clock.next_ms() or clock.now())
        await asyncio.sleep(0)
    await work
    return clock.now() - T0


async def test_an_impact_that_is_over_at_once() -> None:
    async with service(*states("done")) as it:
        assert await carry_out(it) == 0
        assert it.actions == ["do"]
        assert (it.orders[0]["key"], it.orders[0]["instances"][0]["handle"]) == (E1, "vm-17")


@pytest.mark.parametrize("begun", [(202, ""), (200, '{"state":"running"}')])
async def test_an_impact_that_takes_a_while_is_asked_about_every_two_seconds(
    begun: tuple[int, str],
) -> None:
    async with service(begun, *states("running", "running", "done")) as it:
        assert await carry_out(it) == 6 * SECOND_MS
        assert it.actions == ["do", "find", "find", "find"]


async def test_a_question_that_gets_no_answer_is_asked_again() -> None:
    async with service((202, ""), (503, ""), (502, ""), *states("done")) as it:
        assert await carry_out(it) == 6 * SECOND_MS
        assert it.actions == ["do", "find", "find", "find"]


async def test_only_questions_in_a_row_without_an_answer_are_a_failure() -> None:
    silent = [(503, "")] * 4
    replies = [(202, ""), *silent, *states("running"), *silent, *states("done")]
    async with service(*replies) as it:
        await carry_out(it)
        assert it.actions == ["do"] + ["find"] * 10


async def test_a_service_that_is_gone_is_a_failure_in_the_end() -> None:
    async with service((202, "")) as it:
        with pytest.raises(DriverFailed, match="gave no answer"):
            await carry_out(it)
        assert it.actions == ["do"] + ["find"] * 5


@pytest.mark.parametrize("first", [(202, ""), None])
async def test_a_failure_says_the_services_reason(first: tuple[int, str] | None) -> None:
    failed = (200, '{"state":"failed","reason":"no such domain"}')
    async with service(*([first] if first else []), failed) as it:
        with pytest.raises(DriverFailed, match=r"^the service says failed: no such domain$"):
            await carry_out(it)


async def test_nothing_is_begun_if_the_lease_was_lost_while_it_waited() -> None:
    lease = HeldLease()
    lease.is_held = False
    async with service(*states("unknown", "done")) as it:
        asked = order({"url": it.url}, attempt=2)
        clock = VirtualClock(T0)
        with pytest.raises(LeaseLost):
            await WebhookDriver(clock).do(asked, clock.alarm(), lease)
        assert it.actions == ["find"]


async def test_a_later_attempt_asks_first_and_does_nothing_twice() -> None:
    async with service(*states("running", "done")) as it:
        await carry_out(it, attempt=2)
        assert it.actions == ["find", "find"]
    async with service(*states("unknown", "done")) as it:
        await carry_out(it, attempt=2)
        assert it.actions == ["find", "do"]


async def test_what_failed_before_is_done_by_a_later_attempt() -> None:
    async with service(*states("failed", "done")) as it:
        await carry_out(it, attempt=2)
        assert it.actions == ["find", "do"]


@pytest.mark.parametrize("state", list(Found))
async def test_find_is_what_the_service_says(state: Found) -> None:
    async with service(*states(state)) as it:
        found = await WebhookDriver(VirtualClock()).find(order({"url": it.url}, attempt=2))
        assert found is state


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ((500, "hunter2"), "answered 500"),
        ((307, ""), "answered 307"),
        ((200, "ok"), "did not answer JSON"),
        ((200, '{"state":"perhaps"}'), "unknown, running, done, failed"),
        ((200, "x" * (ANSWER_BYTES_MAX + 1)), "more than"),
    ],
)
async def test_an_answer_that_makes_no_sense_is_a_failure_without_secrets(
    reply: tuple[int, str], says: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with service(reply) as it:
        with pytest.raises(DriverFailed, match=says) as failed:
            await carry_out(it)
        assert "hunter2" not in str(failed.value) + caplog.text


async def test_orders_are_signed_with_the_key_in_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("IMPACT_KEY", SECRET)
    async with service(*states("done")) as it:
        await carry_out(it, secret_env="IMPACT_KEY")
        (head,), (body,) = it.heads, it.bodies
        assert head["webhook-signature"] == signature_of(
            SECRET, head["webhook-id"], T0 // SECOND_MS, body
        )


async def test_no_two_requests_have_one_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a service that leaves out what it has seen before would leave out an attempt."""
    monkeypatch.setenv("IMPACT_KEY", SECRET)
    heads: list[str] = []
    for attempt in (2, 3):
        async with service(*states("unknown", "done")) as it:
            await carry_out(it, attempt=attempt, secret_env="IMPACT_KEY")
            heads += [head["webhook-id"] for head in it.heads]
    assert len(set(heads)) == 4


async def test_a_service_that_never_comes_to_an_end_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Though something comes all the time."""
    monkeypatch.setattr(webhook, "TIMEOUT_S", 1.0)
    monkeypatch.setattr(web_requests, "ANSWER_BYTES_MAX", 10**9)

    is_over, has_ended = asyncio.Event(), asyncio.Event()

    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 X\r\nContent-Length: 1000000\r\n\r\n")
        while not is_over.is_set():
            writer.write(b" ")
            await asyncio.sleep(0.05)
        writer.close()
        has_ended.set()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    try:
        with pytest.raises(DriverFailed, match="gave no answer"):
            async with asyncio.timeout(HANG_S):
                await WebhookDriver(VirtualClock()).find(order({"url": url}))
    finally:
        is_over.set()
        await has_ended.wait()
        server.close()


@pytest.mark.parametrize(("key", "says"), [(None, "is not set"), ("hunter2", "whsec_")])
async def test_a_missing_or_wrong_key_is_a_failure_that_names_the_variable(
    key: str | None, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if key is not None:
        monkeypatch.setenv("IMPACT_KEY", key)
    async with service(*states("done")) as it:
        with pytest.raises(DriverFailed, match="IMPACT_KEY") as failed:
            await carry_out(it, secret_env="IMPACT_KEY")
        assert says in str(failed.value)
        assert "hunter2" not in str(failed.value)
        assert not it.orders
