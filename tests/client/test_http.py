"""An answer of the usual form is read without h11, and means the same."""

from hypothesis import given
from hypothesis import strategies as st

from fairwarning.client.http import BODY_BYTES_MAX, READ_BYTES, Address, Broken, Exchange
from fairwarning.client.polling import PollState, Response

NAMES = st.sampled_from(
    ["Date", "ETag", "Server", "x-ms-request-id", "X_odd.name", "Connection", "Transfer-Encoding",
     "Bad Name", "Caf\xe9", "", " Folded"]
)  # fmt: skip
VALUES = st.sampled_from(
    ["", "a", ' "2-1f" ', "\tMon, 16 Nov 2026 06:00:00 GMT", "close", "chunked", "a\rb", "gr\xfcn"]
)
ENDS = st.sampled_from(["\r\n", "\r\n", "\r\n", "\n"])


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    body = draw(st.binary(max_size=40))
    length = len(body) + draw(st.sampled_from([0, 0, 0, 0, 1, -1]))
    given = draw(st.lists(st.tuples(NAMES, VALUES, ENDS), max_size=4))
    given.insert(draw(st.integers(0, len(given))), ("Content-Length", str(length), "\r\n"))
    lines = "".join(f"{name}:{value}{end}" for name, value, end in given)
    status = draw(st.sampled_from(["200 OK", "200 ", "304 Not Modified", "404 Not Found"]))
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode("latin-1") + body


def fed(*pieces: bytes) -> tuple[Response | str | None, bool]:
    exchange = Exchange(Address("http://10.0.0.1"), PollState().poll(waits=False))
    found: Response | None = None
    try:
        for piece in pieces:
            found = exchange.feed(piece)
            if found is not None:
                break
    except Broken:
        return "broken", False
    return found, exchange.keeps_alive


@given(answers())
def test_whole_and_in_pieces_it_is_the_same_answer(data: bytes) -> None:
    whole, in_pieces = fed(data), fed(data[:5], data[5:])
    assert whole == in_pieces


def test_a_connection_with_more_than_the_answer_is_not_used_again() -> None:
    """Whatever it is, it would be taken for the next answer."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    for pieces in ([answer], [answer[:5], answer[5:]]):
        found, keeps_alive = fed(*pieces)
        assert keeps_alive
        assert fed(*pieces[:-1], pieces[-1] + b"HTTP/1.1 200 OK") == (found, False)


def test_a_connection_that_the_service_closes_is_not_used_again() -> None:
    answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
    found, keeps_alive = fed(answer)
    assert isinstance(found, Response)
    assert (found.body, keeps_alive) == (b"{}", False)


def test_an_answer_without_end_is_given_up() -> None:
    pieces = BODY_BYTES_MAX // READ_BYTES
    head, piece = b"HTTP/1.1 200 OK\r\n\r\n", b"x" * READ_BYTES
    assert fed(head, *[piece] * pieces) == (None, False)
    assert fed(head, *[piece] * pieces, b"x") == ("broken", False)
