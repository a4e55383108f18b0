"""How VMs hear of each other where the service is not Fairwarning."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from fairwarning.agent import peers
from fairwarning.agent.client import AgentClient, NotFairwarning
from fairwarning.agent.config.model import Peers
from fairwarning.agent.http_listener import Listener
from fairwarning.agent.metrics import Metrics
from fairwarning.client.changes import Seen
from fairwarning.client.model import EventsUnavailable
from fairwarning.testing import Server
from tests.agent.strange_server import answering
from tests.agent.values import event

SHARED = event(resources=("web-0", "web-1"))


class Azure:
    """Knows nothing of who is ready."""

    async def report(self, event_id: str) -> tuple[str, ...]:
        raise NotFairwarning

    async def waiting(self, event_id: str) -> tuple[str, ...]:
        raise NotFairwarning


async def test_a_directory_that_all_share(tmp_path: Path) -> None:
    shared = Peers(directory=str(tmp_path))
    assert await peers.report(Azure(), shared, SHARED, "web-0") == ("web-1",)
    assert await peers.report(Azure(), shared, SHARED, "web-0") == ("web-1",)
    assert await peers.report(Azure(), shared, SHARED, "web-1") == ()
    assert await peers.waiting(Azure(), shared, SHARED, "web-0") == ()
    peers.forget(shared, SHARED, "web-0")
    assert await peers.waiting(Azure(), shared, SHARED, "web-1") == ("web-0",)
    peers.forget(shared, SHARED, "web-1")
    assert os.listdir(tmp_path) == [], "the last one tidies up"


async def test_a_name_and_an_id_of_any_form_are_found_again_in_the_directory(
    tmp_path: Path,
) -> None:
    shared = Peers(directory=str(tmp_path / "shared"))
    odd = event("../E 1", resources=("a/b %2F", ".."))
    assert await peers.report(Azure(), shared, odd, "a/b %2F") == ("..",)
    assert os.listdir(tmp_path) == ["shared"]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, b'{"Drained": ["web-1"]}'),
        (200, b'{"Drained": [["web-1"]]}'),
        (200, b'{"Ready": ["web-1"]}'),
        (200, b'["web-1"]'),
        (200, b"ready"),
    ],
)
async def test_an_agent_that_answers_anything_else_is_not_ready(status: int, body: bytes) -> None:
    async with answering(status, body) as url:
        urls = Peers(urls=(url,))
        assert await peers.waiting(Azure(), urls, SHARED, "web-0") == ("web-1",)


async def test_a_directory_that_is_gone_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(peers.PeersUnknown, match="cannot be written"):
        await peers.report(Azure(), Peers(directory=str(tmp_path / "file")), SHARED, "web-0")


async def test_the_agents_of_the_others() -> None:
    ready: list[str] = []
    other = Listener(Metrics(), lambda event: ready if event == "E1" else [])
    await other.start("127.0.0.1", 0)
    urls = Peers(urls=(f"http://127.0.0.1:{other.port}", "http://127.0.0.1:9"))
    assert await peers.report(Azure(), urls, SHARED, "web-0") == ("web-1",)
    ready.append("web-1")
    assert await peers.waiting(Azure(), urls, SHARED, "web-0") == ()
    await other.stop()


async def test_without_peers_it_says_what_to_set() -> None:
    with pytest.raises(peers.PeersUnknown, match="set `peers`"):
        await peers.report(Azure(), None, SHARED, "web-0")


async def test_fairwarning_needs_no_peers(fairwarning: Server) -> None:
    planned = fairwarning.schedule("Reboot", "web-0")
    shown = event(planned.id)
    url = fairwarning.vm("web-0").url
    async with AgentClient(url, seen=Seen(), metrics=Metrics()) as service:
        await service.get()
        assert await peers.waiting(service, None, shown, "web-0") == ("web-0",)
        assert await peers.report(service, None, shown, "web-0") == ()
        with pytest.raises(peers.PeersUnknown):
            await peers.waiting(service, None, event("UNKNOWN"), "web-0")


class Away:
    """Fairwarning, which does not answer now."""

    async def report(self, event_id: str) -> tuple[str, ...]:
        raise EventsUnavailable("it answered 503")

    async def waiting(self, event_id: str) -> tuple[str, ...]:
        raise EventsUnavailable("it answered 503")


@pytest.mark.parametrize("ask", [peers.report, peers.waiting])
async def test_a_service_that_is_away_is_not_replaced_by_the_directory(
    tmp_path: Path, ask: Callable[..., Awaitable[tuple[str, ...]]]
) -> None:
    """The others ask the service again, so they would not look into the directory."""
    with pytest.raises(peers.PeersUnknown, match="it answered 503"):
        await ask(Away(), Peers(directory=str(tmp_path)), SHARED, "web-0")
    assert os.listdir(tmp_path) == []


async def test_a_directory_in_which_nobody_has_written_yet_says_so(tmp_path: Path) -> None:
    with pytest.raises(peers.PeersUnknown, match="E1 cannot be read: No such file"):
        await peers.waiting(Azure(), Peers(directory=str(tmp_path)), SHARED, "web-0")


@pytest.mark.parametrize("known", [None, Peers(urls=("http://127.0.0.1:9",))])
def test_without_a_directory_there_is_no_file_to_forget(
    known: Peers | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "E1").mkdir()
    (tmp_path / "E1" / "web-0").touch()
    peers.forget(known, SHARED, "web-0")
    assert (tmp_path / "E1" / "web-0").exists(), "an empty directory would be the working one"
