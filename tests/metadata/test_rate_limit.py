"""Five requests a second, then 429 with Retry-After; test fleets are not limited."""

import pytest

from fairwarning.metadata.settings import EndpointRules
from tests.metadata.rig import PATH, Rig, Seconds, request

pytestmark = pytest.mark.usefixtures("seconds")


async def statuses(rig: Rig, count: int, source: str = "127.0.1.10") -> list[int]:
    client = await rig.connect(source)
    found = []
    for _ in range(count):
        await client.send(request(PATH))
        response = await client.receive()
        if response.status == 429:
            assert response.headers["retry-after"] == "1"
        found.append(response.status)
    return found


async def test_a_real_fleet_is_limited_for_each_instance_apart(seconds: Seconds) -> None:
    rig = Rig(test=False)
    await rig.start()
    assert await statuses(rig, 8) == [200] * 5 + [429] * 3
    assert await statuses(rig, 6, "127.0.1.11") == [200] * 5 + [429]
    seconds.now_s += 0.9
    assert await statuses(rig, 1) == [429]
    seconds.now_s += 0.1
    assert await statuses(rig, 6) == [200] * 5 + [429]
    await rig.stop()


async def test_what_is_refused_counts_too() -> None:
    rig = Rig(test=False)
    await rig.start()
    found = [(await rig.ask(headers={})).status for _ in range(7)]
    assert found == [400] * 5 + [429] * 2
    await rig.stop()


async def test_every_kind_of_question_counts() -> None:
    rig = Rig(test=False)
    await rig.start()
    paths = ("/metadata/versions", "/metadata/instance?api-version=2021-02-01", PATH)
    found = [(await rig.ask(paths[number % 3])).status for number in range(5)]
    assert found == [200] * 5
    assert [(await rig.ask(path)).status for path in paths] == [429] * 3
    approval = await rig.ask(method="POST", body=b'{"StartRequests":[{"EventId":"x"}]}')
    assert approval.status == 429
    await rig.stop()


async def test_to_head_the_refusal_has_no_body() -> None:
    """Its bytes would stand before the next answer."""
    rig = Rig(EndpointRules(requests_per_second_max=1))
    await rig.start()
    client = await rig.connect()
    await client.send(request(PATH, method="HEAD") * 10)
    client.writer.write_eof()
    said = await client.reader.read()
    assert b" 429 " in said
    assert b"{" not in said
    await rig.stop()


@pytest.mark.parametrize(
    ("rules", "is_test"),
    [(EndpointRules(), True), (EndpointRules(requests_per_second_max=0), False)],
)
async def test_no_limit(rules: EndpointRules, is_test: bool) -> None:
    rig = Rig(rules, test=is_test)
    await rig.start()
    assert await statuses(rig, 40) == [200] * 40
    await rig.stop()


async def test_a_limit_that_is_set_holds_in_a_test_fleet_too() -> None:
    rig = Rig(EndpointRules(requests_per_second_max=2))
    await rig.start()
    assert await statuses(rig, 3) == [200, 200, 429]
    await rig.stop()


async def test_what_is_malformed_counts_too() -> None:
    rig = Rig(test=False)
    await rig.start()
    found = []
    for _ in range(7):
        client = await rig.connect()
        await client.send(b"GET / HTTP/1.1\r\nno colon\r\n\r\n")
        found.append((await client.receive()).status)
        assert await client.is_closed()
    assert found == [400] * 5 + [429] * 2
    await rig.stop()
