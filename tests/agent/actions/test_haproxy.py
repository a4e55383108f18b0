"""A server of HAProxy, through a socket that speaks as the real one does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from fairwarning.agent.actions import haproxy
from fairwarning.agent.actions.base import ActionFailed
from fairwarning.agent.actions.haproxy import (
    HaProxyHandler,
    Server,
    State,
    read_answer,
    read_sessions,
    read_state,
)
from fairwarning.agent.config.model import Action, HaProxy
from tests.agent.actions.contexts import context
from tests.agent.actions.haproxy_stand_in import COLUMNS, StandIn


@pytest.fixture
async def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StandIn]:
    monkeypatch.setattr(haproxy, "POLL_S", 0)
    async with StandIn(tmp_path / "haproxy.sock") as stand_in:
        yield stand_in


def action(proxy: StandIn, server: str = "web/a", **rest: str) -> Action:
    return Action(settings=HaProxy(socket=proxy.path, server=server, **rest))  # type: ignore[arg-type]


async def test_a_server_is_drained_until_its_last_session_and_then_put_back(
    proxy: StandIn,
) -> None:
    proxy.sessions = [3, 1, 0]
    kept: dict[str, str] = {}
    await HaProxyHandler().do(action(proxy), context(kept))
    assert proxy.states == {"a": "drain", "b": "ready"}
    assert [each for each in proxy.commands if each.startswith("show stat")] == [
        "show stat web 4 -1"
    ] * 3
    await HaProxyHandler().do(action(proxy), context(kept))
    await HaProxyHandler().undo(action(proxy), context(kept))
    assert proxy.states == {"a": "ready", "b": "ready"}


async def test_cut_off_while_it_waits_it_is_put_back_by_the_undo(proxy: StandIn) -> None:
    proxy.sessions = [1]
    kept: dict[str, str] = {}
    task = asyncio.create_task(HaProxyHandler().do(action(proxy), context(kept)))
    await proxy.looked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert proxy.states["a"] == "drain"
    await HaProxyHandler().undo(action(proxy), context(kept))
    assert proxy.states["a"] == "ready"


@pytest.mark.parametrize("before", ["drain", "maint"])
async def test_a_server_that_somebody_had_taken_out_stays_out(proxy: StandIn, before: str) -> None:
    proxy.states["a"] = before
    kept: dict[str, str] = {}
    await HaProxyHandler().do(action(proxy), context(kept))
    assert proxy.states["a"] == before
    await HaProxyHandler().undo(action(proxy), context(kept))
    assert proxy.states["a"] == before


async def test_what_somebody_changes_meanwhile_is_left_so(proxy: StandIn) -> None:
    kept: dict[str, str] = {}
    await HaProxyHandler().do(action(proxy), context(kept))
    proxy.states["a"] = "maint"
    await HaProxyHandler().undo(action(proxy), context(kept))
    assert proxy.states["a"] == "maint"


async def test_maint_ends_the_sessions(proxy: StandIn) -> None:
    proxy.sessions = [5]
    kept: dict[str, str] = {}
    await HaProxyHandler().do(action(proxy, state="maint"), context(kept))
    assert proxy.states["a"] == "maint"
    assert "shutdown sessions server web/a" in proxy.commands
    await HaProxyHandler().undo(action(proxy, state="maint"), context(kept))
    assert proxy.states["a"] == "ready"


async def test_undo_of_what_was_never_done_asks_nothing(proxy: StandIn) -> None:
    await HaProxyHandler().undo(action(proxy), context())
    assert proxy.commands == []


@pytest.mark.parametrize("server", ["web/z", "wbe/a"])
async def test_a_server_that_is_not_there_is_named(proxy: StandIn, server: str) -> None:
    with pytest.raises(ActionFailed, match=f"no server {server}"):
        await HaProxyHandler().do(action(proxy, server), context())


async def test_a_server_that_is_gone_meanwhile_needs_no_undo(proxy: StandIn) -> None:
    kept: dict[str, str] = {}
    await HaProxyHandler().do(action(proxy), context(kept))
    del proxy.states["a"]
    await HaProxyHandler().undo(action(proxy), context(kept))


async def test_a_socket_that_may_only_look_is_explained(proxy: StandIn) -> None:
    proxy.is_operator = True
    with pytest.raises(ActionFailed, match="needs `level admin`"):
        await HaProxyHandler().do(action(proxy), context())


@pytest.mark.parametrize("server", ["a", "web/", "web/a state ready;disable frontend f", "w\n/a"])
async def test_a_name_is_never_read_as_more_commands(proxy: StandIn, server: str) -> None:
    with pytest.raises(ActionFailed, match="write it as `backend/name`"):
        await HaProxyHandler().do(action(proxy, server), context())
    assert proxy.commands == []


@pytest.mark.parametrize("socket", ["{folder}/none", "127.0.0.1:1"])
async def test_a_socket_that_is_not_there_is_named(tmp_path: Path, socket: str) -> None:
    settings = HaProxy(socket=socket.replace("{folder}", str(tmp_path)), server="web/a")
    with pytest.raises(ActionFailed, match=r"(none|127\.0\.0\.1:1) cannot be reached"):
        await HaProxyHandler().do(Action(settings=settings), context())


async def test_a_socket_may_be_a_host_and_a_port(proxy: StandIn) -> None:
    server = await asyncio.start_server(proxy._serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings = HaProxy(socket=f"127.0.0.1:{port}", server="web/a")
    await HaProxyHandler().do(Action(settings=settings), context())
    assert proxy.states["a"] == "drain"
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize(
    ("admin", "state"),
    [
        (0, State.READY),
        (1, State.MAINT),
        (4, State.MAINT),
        (5, State.MAINT),
        (8, State.DRAIN),
        (9, State.MAINT),
        (0x20, State.READY),
    ],
)
def test_only_what_people_set_counts_as_taken_out(admin: int, state: State) -> None:
    shown = f"1\n# {COLUMNS}\n3 web 1 a 127.0.0.1 2 {admin} 1 1 0\n"
    assert read_state(shown, Server("web", "a")) is state


def test_who_waits_for_the_server_counts_as_a_session() -> None:
    shown = "# pxname,svname,qcur,qmax,scur\nweb,b,9,9,9\nweb,a,2,5,1\n"
    assert read_sessions(shown, Server("web", "a")) == 3


def test_what_haproxy_says_to_a_command_is_a_refusal_and_to_a_question_its_answer() -> None:
    server = Server("web", "a")
    with pytest.raises(ActionFailed, match="HAProxy answered: 'set server' expects"):
        read_answer("set server web/a state x", server, "'set server' expects\nmore\n")
    assert read_answer("set server web/a state drain", server, "\n") == ""
    assert read_answer("show stat", server, "# pxname\n\n") == "# pxname"


async def test_a_path_may_end_as_an_address_does(tmp_path: Path) -> None:
    async with StandIn(tmp_path / "haproxy:80") as proxy:
        await HaProxyHandler().do(action(proxy), context())
        assert proxy.states["a"] == "drain"


async def test_a_state_that_haproxy_does_not_have_is_named(proxy: StandIn) -> None:
    with pytest.raises(ActionFailed, match="'off' is no state; write drain or maint"):
        await HaProxyHandler().do(action(proxy, state="off"), context())
    assert proxy.commands == []


def test_statistics_without_the_server_are_no_count_of_zero() -> None:
    with pytest.raises(ActionFailed, match="no server web/a"):
        read_sessions("# pxname,svname,qcur,qmax,scur\nweb,b,0,0,0\n", Server("web", "a"))


@asynccontextmanager
async def saying(path: Path, part: bytes, times: int = 1) -> AsyncIterator[HaProxy]:
    """A socket that says a part some times to every command, and hangs up only at the end."""
    hung_up = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            for _ in range(times):
                writer.write(part)
                await writer.drain()
            await hung_up.wait()
        writer.close()

    async with await asyncio.start_unix_server(serve, path):
        try:
            yield HaProxy(socket=str(path), server="web/a")
        finally:
            hung_up.set()


async def test_a_socket_that_says_nothing_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(haproxy, "CONNECT_S_MAX", 0.01)
    async with saying(tmp_path / "socket", b"") as settings:
        with pytest.raises(ActionFailed, match="socket does not answer"):
            await HaProxyHandler().do(Action(settings=settings), context())


async def test_an_answer_without_an_end_is_not_read_for_ever(tmp_path: Path) -> None:
    async with saying(tmp_path / "socket", b"x" * 65_536, times=80) as settings:
        with pytest.raises(ActionFailed, match="larger than any that it gives"):
            await HaProxyHandler().do(Action(settings=settings), context())


async def test_a_drain_need_not_wait_for_the_sessions(proxy: StandIn) -> None:
    proxy.sessions = [5]
    settings = HaProxy(socket=proxy.path, server="web/a", wait=False)
    await HaProxyHandler().do(Action(settings=settings), context())
    assert proxy.states["a"] == "drain"
    assert not proxy.looked.is_set()


async def test_a_socket_may_be_an_ipv6_address_and_a_port(proxy: StandIn) -> None:
    async with await asyncio.start_server(proxy._serve, "::1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        settings = HaProxy(socket=f"[::1]:{port}", server="web/a")
        await HaProxyHandler().do(Action(settings=settings), context())
    assert proxy.states["a"] == "drain"
