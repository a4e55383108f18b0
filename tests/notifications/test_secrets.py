"""What is secret about a target is in no log, no list, no error and no history."""

import logging
from collections.abc import Callable

import pytest

from fairwarning.core.instants import DAY_MS
from fairwarning.notifications.model import TargetDraft, TargetKind
from tests.engine.harness import ME
from tests.notifications.receiver import Receiver, Request, receiving
from tests.notifications.rig import notification_rig

Url = Callable[[Receiver], str]

# Apprise imports a module of the standard library that is on its way out.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")


@pytest.mark.parametrize(
    ("kind", "url"),
    [
        (TargetKind.WEBHOOK, lambda it: f"http://me:hunter2@127.0.0.1:{it.port}/hunter2?k=hunter2"),
        (TargetKind.WEBHOOK, lambda _: "http://me:hunter2@127.0.0.1:1/h?k=hunter2#hunter2"),
        (
            TargetKind.APPRISE,
            lambda it: f"json://me:hunter2@127.0.0.1:{it.port}/hunter2?+k=hunter2",
        ),
        (TargetKind.APPRISE, lambda _: "json://me:hunter2@127.0.0.1:1/hunter2"),
    ],
)
async def test_nothing_says_a_secret(
    kind: TargetKind, url: Url, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with notification_rig() as rig, receiving(_refusing) as receiver:
        notifications = await rig.node()
        draft = TargetDraft(name="t", kind=kind, url=url(receiver))
        target = await notifications.create(draft, by=ME)
        await rig.reboot("web-0")
        await rig.pass_time(DAY_MS)
        outcome = await notifications.test(target.id)
        letters = await notifications.dead_letters()
        assert letters
        (listed,) = await notifications.list()
        said = [repr(target), str(listed), listed.url, str(outcome), str(letters), caplog.text]
        assert target.secret == "" or target.secret not in "".join(said)
        entries = str(await rig.rig.entries())
        assert "hunter2" not in "".join([*said, entries, str(draft)])


def _refusing(_: Request) -> int:
    return 401
