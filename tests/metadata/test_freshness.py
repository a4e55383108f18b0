"""Documents that may be out of date are served for a while, and then refused."""

import pytest

from fairwarning.metadata.endpoint_state import EndpointState
from fairwarning.metadata.freshness import STALE_S_MIN, Freshness
from tests.metadata.rig import PATH, Rig, request
from tests.metadata.test_polls_held import hold

INSTANCE = "/metadata/instance?api-version=2021-02-01"
ASKING = {"Metadata": "true", "X-Fairwarning-Age": "true"}


class Age:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def aged(rig: Rig) -> tuple[EndpointState, Age]:
    assert rig.server is not None
    state, age = rig.server._state, Age()
    state.freshness.age_s = age
    return state, age


def test_one_line_says_that_it_begins_and_one_that_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    age, expired = Age(), list[bool]()
    freshness = Freshness(age, 60.0, expired.append)
    for age.now_s in (0.0, STALE_S_MIN - 1, STALE_S_MIN, 59.0, 60.0):
        freshness.look()
    assert expired == []
    (line,) = caplog.messages
    assert "documents of 10 s ago until they are 60 s old" in line
    for age.now_s in (61.0, 62.0):
        freshness.look()
    assert expired == [True]
    for age.now_s in (3.0, 4.0):
        freshness.look()
    assert expired == [True, False]
    assert [each.split(",")[0] for each in caplog.messages[1:]] == [
        "the documents are 61 s old",
        "the documents are up to date again",
    ]


def test_without_a_limit_documents_never_expire() -> None:
    age, expired = Age(), list[bool]()
    age.now_s = 1e9
    Freshness(age, None, expired.append).look()
    assert expired == []


@pytest.mark.parametrize("keeps_alive", [True, False])
async def test_old_documents_are_refused_and_fresh_ones_served_again(
    rig: Rig, keeps_alive: bool
) -> None:
    state, age = aged(rig)
    headers = {"Metadata": "true"} | ({} if keeps_alive else {"Connection": "close"})
    poll = request(headers=headers)
    client = await rig.connect()

    async def ask(data: bytes = poll) -> int:
        nonlocal client
        if not keeps_alive:
            client = await rig.connect()
        await client.send(data)
        answer = await client.receive()
        if answer.status == 503:
            assert answer.headers["retry-after"] == "5"
        return answer.status

    # Several times, so that it is a known poll.
    assert [await ask() for _ in range(3)] == [200] * 3
    age.now_s = 299.0
    state.freshness.look()
    assert await ask() == 200
    age.now_s = 301.0
    state.freshness.look()
    assert [await ask() for _ in range(3)] == [503] * 3
    assert await ask(request(INSTANCE, headers=headers)) == 503
    assert await ask(request("/metadata/versions", headers=headers)) == 200
    age.now_s = 1.0
    state.freshness.look()
    assert [await ask() for _ in range(3)] == [200] * 3


async def test_a_held_poll_is_told_when_the_documents_become_too_old(rig: Rig) -> None:
    client = await hold(rig)
    state, age = aged(rig)
    age.now_s = 301.0
    state.freshness.look()
    assert (await client.receive()).status == 503
    await client.send(request("/metadata/versions"))
    assert (await client.receive()).status == 200, "the connection goes on"


async def test_the_age_is_told_to_who_asks_for_it(rig: Rig) -> None:
    _, age = aged(rig)
    age.now_s = 12.9
    first = await rig.ask(headers=ASKING)
    assert (first.status, first.headers["x-fairwarning-age"]) == (200, "12")
    assert first.incarnation == 1
    for path in (PATH, INSTANCE):
        assert (await rig.ask(path, headers=ASKING)).headers["x-fairwarning-age"] == "12"
        assert "x-fairwarning-age" not in (await rig.ask(path)).headers
    tagged = {**ASKING, "If-None-Match": first.headers["etag"]}
    answer = await rig.ask(headers=tagged)
    assert (answer.status, answer.headers["x-fairwarning-age"]) == (304, "12")
    held = await rig.ask(f"{PATH}&wait=1", headers=tagged)
    assert (held.status, held.headers["x-fairwarning-age"]) == (304, "12")
    assert (await rig.ask(headers=ASKING, source="127.9.9.9")).status == 404


async def test_a_node_that_is_alone_is_never_out_of_date(rig: Rig) -> None:
    assert (await rig.ask(headers=ASKING)).headers["x-fairwarning-age"] == "0"
