"""Where the service is looked for, and in which order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.client import ScheduledEvents
from fairwarning.client.dhcp import discover, offered_address, payload, wrapped
from fairwarning.client.discovery import USUAL_URL, endpoint_url

WIRE_SERVER = "168.63.129.16"


def nobody(host: str, port: int) -> bool:
    return False


def not_asked() -> str | None:
    raise AssertionError("DHCP was asked although the address was known")


def test_what_is_said_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRWARNING_METADATA_URL", "http://10.0.0.1")
    with ScheduledEvents("http://10.0.0.2:8169/vm/web-0") as events:
        assert events.url == "http://10.0.0.2:8169/vm/web-0"
    with ScheduledEvents() as events:
        assert events.url == "http://10.0.0.1"


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({"FAIRWARNING_METADATA_URL": " http://10.0.0.1:81 "}, "http://10.0.0.1:81"),
        ({"FAIRWARNING_METADATA_URL": "10.0.0.1:81"}, "http://10.0.0.1:81"),
        ({"SCHEDULEDEVENTSIP": WIRE_SERVER}, f"http://{WIRE_SERVER}"),
        (
            {"SCHEDULEDEVENTSIP": WIRE_SERVER, "FAIRWARNING_METADATA_URL": "http://10.0.0.1"},
            "http://10.0.0.1",
        ),
    ],
)
def test_the_environment_comes_before_any_network(environment: dict[str, str], url: str) -> None:
    assert endpoint_url(environment, is_reachable=nobody, ask_dhcp=not_asked) == url


def test_the_usual_address_comes_before_dhcp() -> None:
    def only_usual(host: str, port: int) -> bool:
        return (host, port) == ("169.254.169.254", 80)

    found = endpoint_url({"SCHEDULEDEVENTSIP": ""}, is_reachable=only_usual, ask_dhcp=not_asked)
    assert found == USUAL_URL


@pytest.mark.parametrize(
    ("open_ports", "url"),
    [
        ({80}, f"http://{WIRE_SERVER}"),
        ({8080}, f"http://{WIRE_SERVER}:8080"),
        ({80, 8080}, f"http://{WIRE_SERVER}"),
        (set(), f"http://{WIRE_SERVER}"),
    ],
)
def test_dhcps_word_is_the_last(open_ports: set[int], url: str) -> None:
    def is_reachable(host: str, port: int) -> bool:
        return host == WIRE_SERVER and port in open_ports

    assert endpoint_url({}, is_reachable=is_reachable, ask_dhcp=lambda: WIRE_SERVER) == url


def test_if_nobody_says_anything_the_usual_one_may_yet_come_up() -> None:
    assert endpoint_url({}, is_reachable=nobody, ask_dhcp=lambda: None) == USUAL_URL


def offer(transaction: int, options: bytes) -> bytes:
    asked = discover(transaction, b"\2\0\0\0\0\1")
    return b"\2" + asked[1:240] + options


def test_the_option_is_found_among_others() -> None:
    options = b"\x35\1\2\0\0\x03\4\x0a\0\0\1\xf5\4\xa8\x3f\x81\x10\xff"
    assert offered_address(offer(7, options), 7) == WIRE_SERVER


@pytest.mark.parametrize(
    "message",
    [
        offer(8, b"\xf5\4\xa8\x3f\x81\x10\xff"),
        discover(7, b"\2\0\0\0\0\1"),
        offer(7, b"\x35\1\2\xff\xf5\4\xa8\x3f\x81\x10"),
        offer(7, b"\xf5\2\xa8\x3f\xff"),
        offer(7, b"\xf5\4\xa8"),
        offer(7, b"")[:230],
        b"",
    ],
    ids=["another's", "a question", "after the end", "too short", "cut", "no cookie", "nothing"],
)
def test_nothing_else_is_taken_for_an_answer(message: bytes) -> None:
    assert offered_address(message, 7) is None


@given(st.binary(max_size=400))
def test_no_packet_breaks_the_reading(packet: bytes) -> None:
    payload(packet)
    offered_address(offer(7, packet), 7)


def test_a_question_is_a_whole_packet() -> None:
    packet = wrapped(b"message")
    assert sum(int.from_bytes(packet[at : at + 2]) for at in range(0, 20, 2)) % 0xFFFF == 0
    assert payload(packet) is None
    assert payload(packet[:22] + b"\x00\x44" + packet[24:]) == b"message"
