"""Both kinds of connections, against services that hang up, talk too much or speak no HTTP."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest

from fairwarning.client import connections
from fairwarning.client.connections import AsyncConnection, BlockingConnection
from fairwarning.client.http import Address, Broken, TimedOut
from fairwarning.client.polling import Request, Response
from tests.support.patience import HANG_S

GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CLOSING = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
UNTIL_THE_END = b"HTTP/1.1 200 OK\r\n\r\n{}"
OTHER = GOOD.replace(b"{}", b"[]")
GARBAGE = b"220 mail.example.com ESMTP\r\n\r\n"
REQUEST = Request(method="GET", target="/", headers={}, timeout_s=HANG_S)


class Service:
    """Gives the answers of one list on each connection, one for each request, and hangs up."""

    def __init__(self, listening: socket.socket) -> None:
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self.connections: list[list[bytes]] = []
        self.accepted = 0
        self._listening = listening
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                taken = self._listening.accept()[0]
            except OSError:
                return
            self.accepted += 1
            with taken:
                for answer in self.connections.pop(0):
                    if not taken.recv(65_536):
                        break
                    taken.sendall(answer)


@pytest.fixture
def service() -> Iterator[Service]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield Service(listening)
        # `close` alone would not wake the thread that accepts.
        listening.shutdown(socket.SHUT_RDWR)


Link = tuple[Callable[[], Awaitable[Response]], Callable[[], Awaitable[None]]]
"""How to ask, and how to close."""
Kind = Callable[[str], Link]


def blocking(url: str) -> Link:
    link = BlockingConnection(Address(url))
    return (
        lambda: asyncio.to_thread(link.ask, REQUEST),
        lambda: asyncio.to_thread(link.close),
    )


def streamed(url: str) -> Link:
    link = AsyncConnection(Address(url))
    return lambda: link.ask(REQUEST), link.close


both = pytest.mark.parametrize("kind", [blocking, streamed])


@both
@pytest.mark.parametrize(
    ("answer", "then"), [(CLOSING, [OTHER]), (UNTIL_THE_END, []), (GOOD + GOOD, [OTHER])]
)
async def test_after_an_answer_that_ends_a_connection_the_next_request_opens_another(
    service: Service, kind: Kind, answer: bytes, then: list[bytes]
) -> None:
    service.connections = [[answer, *then], [GOOD, GOOD]]
    ask, close = kind(service.url)
    assert [(await ask()).body for _ in range(3)] == [b"{}"] * 3
    assert service.accepted == 2
    await close()


@both
@pytest.mark.parametrize("answers", [[GARBAGE, OTHER], [GARBAGE], [b""], [GOOD[:-1]]])
async def test_what_is_no_whole_answer_is_broken_and_the_next_request_works(
    service: Service, kind: Kind, answers: list[bytes]
) -> None:
    service.connections = [answers, [GOOD]]
    ask, close = kind(service.url)
    with pytest.raises(Broken):
        await ask()
    assert service.accepted == 1, "a new connection that breaks is not tried again"
    assert (await ask()).body == b"{}"
    await close()


@both
async def test_a_kept_connection_that_has_died_costs_one_more_try_and_no_error(
    service: Service, kind: Kind
) -> None:
    service.connections = [[GOOD, b""], [GOOD], [b""]]
    ask, close = kind(service.url)
    assert [(await ask()).body for _ in range(2)] == [b"{}"] * 2
    with pytest.raises(Broken):
        await ask()
    assert service.accepted == 3
    await close()


async def test_bytes_that_nobody_asked_for_do_not_count_as_the_next_answer(
    service: Service,
) -> None:
    link = AsyncConnection(Address(service.url))
    service.connections = [[GOOD], [GOOD]]
    transport = await link._connect()
    transport.get_buffer(-1)[: len(GOOD)] = GOOD.replace(b"{}", b"[]")
    transport.buffer_updated(len(GOOD))
    assert not transport.is_open
    assert (await link.ask(REQUEST)).body == b"{}"
    await link.close()


async def test_a_host_that_lets_packets_fall_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(connections, "CONNECT_S_MAX", 0.01)
    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", never)
    with pytest.raises(TimedOut, match=r"http://10\.0\.0\.1 did not answer in time"):
        await AsyncConnection(Address("http://10.0.0.1")).ask(REQUEST)
