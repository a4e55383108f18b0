"""Messages through the real Apprise, to a real socket."""

from pathlib import Path

import pytest

from fairwarning.agent.actions.base import ActionFailed
from fairwarning.agent.actions.notify import message
from fairwarning.agent.actions.registry import HANDLERS
from fairwarning.agent.config.model import Action, Notify
from tests.agent.actions.contexts import context
from tests.agent.actions.test_http import Hub, listening


async def do(settings: Notify) -> None:
    await HANDLERS[Notify].do(Action(settings=settings), context())


async def test_a_message_arrives_with_its_templates_filled_in() -> None:
    hub = Hub("200 OK")
    async with listening(hub.serve) as port:
        await do(Notify(url=f"json://127.0.0.1:{port}/", title="{event.type}", body="of {me}"))
    assert b'"title": "Reboot"' in hub.bodies[0]
    assert b'"message": "of Web-1"' in hub.bodies[0]


async def test_a_message_without_words_says_what_happens() -> None:
    hub = Hub("200 OK")
    async with listening(hub.serve) as port:
        await do(Notify(url=f"json://127.0.0.1:{port}/"))
    assert b'"title": "Reboot of Web-1, web-2"' in hub.bodies[0]


def test_a_message_with_a_text_and_no_title_is_sent_as_it_is() -> None:
    said = message(Notify(url="json://x", body="of {me}"), context())
    assert (said["title"], said["body"]) == ("", "of Web-1")


async def test_a_service_that_does_not_take_it_is_a_failure_without_secrets() -> None:
    async with listening(Hub("500 Oops").serve) as port:
        with pytest.raises(ActionFailed, match="json://…: the service did not take") as failed:
            await do(Notify(url=f"json://me:s3cret@127.0.0.1:{port}/s3cret"))
    assert "s3cret" not in str(failed.value)


async def test_a_url_that_apprise_does_not_know_is_a_failure_that_says_so() -> None:
    with pytest.raises(ActionFailed, match="nosuch://…: Apprise knows no such service"):
        await do(Notify(url="nosuch://s3cret"))


async def test_without_apprise_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "apprise.py").write_text("raise ImportError('not here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(ActionFailed, match=r"install the extra `chat`"):
        await do(Notify(url="json://127.0.0.1:1/"))


async def test_an_apprise_that_breaks_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "apprise.py").write_text("raise RuntimeError('broken')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(ActionFailed, match="Apprise ended with code 1"):
        await do(Notify(url="json://127.0.0.1:1/"))


async def test_a_message_is_never_unsaid() -> None:
    await HANDLERS[Notify].undo(Action(settings=Notify(url="nosuch://x")), context())
