"""Chat and mail through the real Apprise package, to its `json://` target on this machine."""

import importlib
from types import ModuleType

import pytest

from fairwarning.core.refusals import Code, Refused
from fairwarning.notifications.model import Filters, TargetDraft, TargetKind, Template
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
