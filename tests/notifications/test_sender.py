"""Chat and mail through the real Apprise package, to its `json://` target on this machine."""

import asyncio
import importlib
import threading
from types import ModuleType

import httpx
import pytest
from msgspec.structs import replace

from fairwarning.core.instants import Instant
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.webhook_signatures import secret_of
from fairwarning.engine.clocks import VirtualClock
from fairwarning.notifications import sender
from fairwarning.notifications.model import (
    Filters,
    Message,
    Target,
    TargetDraft,
    TargetKind,
    Template,
)
from fairwarning.notifications.sender import NetworkSender
from tests.engine.harness import ME
from tests.notifications.receiver import receiving
from tests.notifications.rig import notification_rig

# Apprise imports a module of the standard library that is on its way out.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")


def chat(url: str, template: Template | None = None) -> TargetDraft:
    return TargetDraft(
        name="chat",
        kind=TargetKind.APPRISE,
        url=url,
        filters=Filters(kinds=("Scheduled",)),
        template=template or Template(),
    )


async def test_people_get_a_title_and_a_text() -> None:
    async with notification_rig() as rig, receiving() as receiver:
        notifications = await rig.node()
        await notifications.create(chat(f"json://127.0.0.1:{receiver.port}/"), by=ME)
        await rig.reboot("web-0", "web-2")
        await rig.sender.idle()
        (said,) = (each.json for each in receiver.requests)
        assert said["title"] == "Reboot of web-0, web-2: scheduled"
        first, second = said["message"].splitlines()
        assert first.startswith("Reboot of web-0, web-2 announced for 2020-09-13 12:41:40 UTC")
        assert rig.scope.id in second


async def test_the_words_are_the_operators() -> None:
    async with notification_rig() as rig, receiving() as receiver:
        notifications = await rig.node()
        words = Template(title="$type!", body="$resources, because of $why ($$5)")
        await notifications.create(chat(f"json://127.0.0.1:{receiver.port}/", words), by=ME)
        await rig.reboot("web-0")
        await rig.sender.idle()
        (said,) = (each.json for each in receiver.requests)
        assert (said["title"], said["message"]) == ("Reboot!", "web-0, because of patch day ($5)")


async def test_a_service_that_refuses_is_tried_again() -> None:
    answers = iter([500])
    async with notification_rig() as rig, receiving(lambda _: next(answers, 200)) as receiver:
        notifications = await rig.node()
        await notifications.create(chat(f"json://127.0.0.1:{receiver.port}/"), by=ME)
        await rig.reboot("web-0")
        await rig.pass_time(10_000)
        assert len(receiver.requests) == 2
        assert not await notifications.dead_letters()


async def test_a_url_that_apprise_does_not_know_is_refused() -> None:
    async with notification_rig() as rig:
        notifications = await rig.node()
        with pytest.raises(Refused) as refused:
            await notifications.create(chat("nonesuch://key@host"), by=ME)
        assert refused.value.code is Code.NOTIFICATION_INVALID
        assert "key" not in refused.value.message


async def test_without_the_package_the_sentence_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> ModuleType:
        raise ModuleNotFoundError(name)

    async with notification_rig() as rig:
        notifications = await rig.node()
        monkeypatch.setattr(importlib, "import_module", missing)
        with pytest.raises(Refused, match=r"pip install 'fairwarning\[chat\]'"):
            await notifications.create(chat("json://127.0.0.1:1/"), by=ME)


def hook(url: str) -> Target:
    key = secret_of(b"k" * 32)
    return Target(id="t", name="hook", kind=TargetKind.WEBHOOK, url=url, secret=key,
                  created_ms=Instant(0), created_by=ME)  # fmt: skip


MESSAGE = Message(id="m", title="title", text="text", body="{}")


async def test_a_sender_that_was_closed_can_send_again() -> None:
    network = NetworkSender(VirtualClock())
    async with receiving() as receiver:
        for _ in range(2):
            assert (await network.send(hook(receiver.url), MESSAGE)).is_delivered
            await network.close()
    assert len(receiver.requests) == 2


@pytest.mark.parametrize(
    ("status", "error", "is_final"),
    [(200, "", False), (299, "", False), (300, "answered 300", False),
     (404, "answered 404", False), (410, "answered 410", True), (500, "answered 500", False)],
)  # fmt: skip
async def test_what_an_answer_means(status: int, error: str, is_final: bool) -> None:
    network = NetworkSender(VirtualClock())
    async with receiving(lambda _: status) as receiver:
        outcome = await network.send(hook(receiver.url), MESSAGE)
        await network.close()
    assert (outcome.error, outcome.is_final) == (error, is_final)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (None, "no answer within 0.01 s"),
        (httpx.ReadTimeout("http://secret"), "no answer within 0.01 s"),
        (httpx.ConnectError("http://secret"), "no connection (ConnectError)"),
        (ValueError("http://secret"), "could not be sent (ValueError)"),
    ],
)
async def test_an_error_says_no_address_and_is_not_final(
    error: Exception | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "WEBHOOK_TIMEOUT_S", 0.01)
    network = NetworkSender(VirtualClock())

    async def fail(*given: object) -> int:
        if error is None:
            await asyncio.Event().wait()
            return 200
        raise error

    monkeypatch.setattr(network, "_status", fail)
    outcome = await network.send(hook("http://127.0.0.1/"), MESSAGE)
    assert (outcome.error, outcome.is_final) == (said, False)


async def test_a_chat_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "CHAT_TIMEOUT_S", 0.01)
    over = threading.Event()
    monkeypatch.setattr(sender, "_notify", lambda url, message: over.wait())
    target = replace(hook("json://127.0.0.1/"), kind=TargetKind.APPRISE)
    outcome = await NetworkSender(VirtualClock()).send(target, MESSAGE)
    over.set()
    assert outcome.error == "not sent within 0.01 s"
    assert not outcome.is_final
