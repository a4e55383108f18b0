"""A leader of Patroni is handed over before the event, and made the leader again if told so."""

import logging
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from fairwarning.agent.actions import patroni as action_module
from fairwarning.agent.actions.base import ActionFailed
from fairwarning.agent.actions.patroni import SUCCESSOR, WAS_LEADER, PatroniHandler, not_done
from fairwarning.agent.actions.patroni_api import Cluster, Member, read_cluster
from fairwarning.agent.config.model import Action, Patroni
from tests.agent.actions.contexts import context
from tests.agent.actions.patroni_stand_in import AFTER_OLD, PatroniStandIn, patroni


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(action_module, "POLL_S", 0)


@pytest.fixture
def api() -> Iterator[PatroniStandIn]:
    with patroni() as stand_in:
        yield stand_in


def action(api: PatroniStandIn, **settings: str | bool) -> Action:
    return Action(settings=Patroni(url=api.url, **settings))  # type: ignore[arg-type]


async def do(api: PatroniStandIn, kept: dict[str, str] | None = None, **settings: str) -> None:
    await PatroniHandler().do(action(api, **settings), context(kept))


@pytest.mark.parametrize("states", [("stopping", "starting", "running", "streaming"), AFTER_OLD])
async def test_a_leader_is_switched_over_until_it_streams_from_the_new_one(
    api: PatroniStandIn, states: tuple[str, ...]
) -> None:
    api.followed_by = states
    kept: dict[str, str] = {}
    await do(api, kept)
    assert api.switchovers == ['POST /switchover {"leader": "a"}']
    assert api.leader == "b"
    assert api.states["a"] == states[-1]
    assert kept == {WAS_LEADER: "a", SUCCESSOR: "b"}


async def test_a_replica_has_nothing_to_switch_over(
    api: PatroniStandIn, caplog: pytest.LogCaptureFixture
) -> None:
    api.leader = "b"
    kept: dict[str, str] = {}
    with caplog.at_level(logging.INFO):
        await do(api, kept)
    assert "nothing to switch over" in caplog.text
    assert (api.asked, kept) == (["GET /leader"], {})


async def test_the_candidate_of_the_config_is_asked_for(api: PatroniStandIn) -> None:
    api.states["c"], api.timelines["c"] = "streaming", 1
    await do(api, candidate="c")
    assert api.leader == "c"
    api.leader = "a"
    with pytest.raises(ActionFailed, match="candidate does not exists"):
        await do(api, candidate="{me}")


async def test_after_a_crash_it_waits_for_the_switchover_that_it_asked_for(
    api: PatroniStandIn,
) -> None:
    api.is_answer_lost = True
    kept: dict[str, str] = {}
    with pytest.raises(ActionFailed, match="no answer in HTTP"):
        await do(api, kept)
    assert kept == {WAS_LEADER: "a"}
    await do(api, kept)
    assert len(api.switchovers) == 1
    assert api.states["a"] == "streaming"
    await do(api, kept)
    assert len(api.switchovers) == 1


async def test_a_leader_whose_lock_went_meanwhile_waits_for_the_other(api: PatroniStandIn) -> None:
    real = api.answer

    def overtaken(method: str, path: str, body: bytes) -> tuple[int, str] | None:
        if method == "POST":
            api.move_to("b")
        return real(method, path, body)

    api.answer = overtaken  # type: ignore[method-assign]
    await do(api)
    assert api.states["a"] == "streaming"


async def test_an_unknown_result_is_waited_for(api: PatroniStandIn) -> None:
    api.refusal = (503, "Switchover status unknown")
    real = api.answer

    def late(method: str, path: str, body: bytes) -> tuple[int, str] | None:
        if path == "/cluster" and api.switchovers and api.leader == "a":
            api.move_to("b")
        return real(method, path, body)

    api.answer = late  # type: ignore[method-assign]
    await do(api)
    assert api.leader == "b"


@pytest.mark.parametrize(
    ("refusal", "why"),
    [
        (
            (412, "switchover is not possible: no good candidates have been found"),
            r"no good candidates have been found \(b is streaming\)",
        ),
        ((403, "Access is denied"), "allowlist"),
        ((503, "Switchover failed"), "Switchover failed"),
        ((500, ""), "nothing"),
    ],
)
async def test_a_refusal_says_why(api: PatroniStandIn, refusal: tuple[int, str], why: str) -> None:
    api.refusal = refusal
    with pytest.raises(ActionFailed, match=why):
        await do(api)
    assert api.leader == "a"


async def test_a_paused_cluster_needs_a_candidate(api: PatroniStandIn) -> None:
    api.is_paused = True
    with pytest.raises(ActionFailed, match="the cluster is paused; run `patronictl resume`"):
        await do(api)
    await do(api, candidate="b")
    assert api.leader == "b"


async def test_a_cluster_of_one_is_not_asked(api: PatroniStandIn) -> None:
    del api.states["b"]
    with pytest.raises(ActionFailed, match="no member but a, so nobody can take over"):
        await do(api)
    assert api.switchovers == []


async def test_what_is_missing_when_time_is_up_is_said(api: PatroniStandIn) -> None:
    api.followed_by = ("stopping",) * 10_000
    with pytest.raises(ActionFailed, match="not done in time: a does not stream from b yet"):
        await PatroniHandler().do(action(api), context(time_left_s=0))


async def test_credentials_are_sent_and_wrong_ones_named(
    api: PatroniStandIn, tmp_path: Path
) -> None:
    api.credentials = "fw:s€cret%41"
    with pytest.raises(ActionFailed, match="refuses the credentials"):
        await do(api)
    with pytest.raises(ActionFailed, match="refuses the credentials"):
        await do(api, user="fw", password="no")
    (tmp_path / "password").write_text("s€cret%41\n")
    with pytest.raises(ActionFailed, match="none cannot be read: No such file"):
        await do(api, user="fw", password_file=str(tmp_path / "none"))
    await do(api, user="fw", password_file=str(tmp_path / "password"))
    assert api.leader == "b"
    api.leader = "a"
    await do(api, user="fw", password="s€cret%41")


async def test_an_api_that_is_not_there(api: PatroniStandIn) -> None:
    with pytest.raises(ActionFailed, match="cannot be reached: Connection refused; is Patroni"):
        await PatroniHandler().do(Action(settings=Patroni(url="http://127.0.0.1:1")), context())


async def test_https_with_a_certificate_of_our_own(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    mine = authority.issue_cert("agent.example")
    mine.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "me.pem"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(tls)
    authority.configure_trust(tls)
    tls.verify_mode = ssl.CERT_REQUIRED
    ca, cert = str(tmp_path / "ca.pem"), str(tmp_path / "me.pem")
    with patroni(tls) as api:
        with pytest.raises(ActionFailed, match=r"is not trusted: .*set `ca_file`"):
            await do(api)
        with pytest.raises(ActionFailed, match=r"`cert_file`|Connection reset"):
            await do(api, ca_file=ca)
        with pytest.raises(ActionFailed, match="files for https cannot be used: No such file"):
            await do(api, ca_file=str(tmp_path / "none"))
        await do(api, ca_file=ca, cert_file=cert)
        assert api.leader == "b"


async def test_nothing_is_undone_unless_told_so(api: PatroniStandIn) -> None:
    kept: dict[str, str] = {}
    await do(api, kept)
    await PatroniHandler().undo(action(api), context(kept))
    assert api.leader == "b"
    assert not action(api).is_undoable
    assert action(api, switch_back=True).is_undoable


async def test_switched_back_once_it_streams(api: PatroniStandIn) -> None:
    back, kept = action(api, switch_back=True), dict[str, str]()
    await PatroniHandler().do(back, context(kept))
    await PatroniHandler().undo(back, context(kept))
    assert api.leader == "a"
    assert api.switchovers[-1] == 'POST /switchover {"leader": "b", "candidate": "a"}'
    await PatroniHandler().undo(back, context(kept))
    assert len(api.switchovers) == 2


async def test_not_switched_back_if_it_was_no_leader_or_somebody_else_moved_it(
    api: PatroniStandIn, caplog: pytest.LogCaptureFixture
) -> None:
    back, kept = action(api, switch_back=True), dict[str, str]()
    api.leader = "b"
    await PatroniHandler().do(back, context(kept))
    await PatroniHandler().undo(back, context(kept))
    assert api.switchovers == []
    api.leader = "a"
    await PatroniHandler().do(back, context(kept))
    api.states["c"], api.timelines["c"] = "streaming", 2
    api.move_to("c")
    with caplog.at_level(logging.INFO):
        await PatroniHandler().undo(back, context(kept))
    assert "somebody else has made c the leader" in caplog.text
    assert api.leader == "c"


async def test_a_refused_switch_back_is_a_failure_that_the_agent_tries_again(
    api: PatroniStandIn,
) -> None:
    back, kept = action(api, switch_back=True), dict[str, str]()
    await PatroniHandler().do(back, context(kept))
    api.refusal = (412, "switchover is not possible: no good candidates have been found")
    with pytest.raises(ActionFailed, match="no good candidates"):
        await PatroniHandler().undo(back, context(kept))
    api.refusal = None
    await PatroniHandler().undo(back, context(kept))
    assert api.leader == "a"


A = Member(name="a", role="replica", state="streaming", timeline=2)
B = Member(name="b", role="leader", state="running", timeline=2)


@pytest.mark.parametrize(
    ("members", "lacking"),
    [
        ((A, B), ""),
        ((A,), "the cluster has no leader yet"),
        ((Member(name="a", role="leader", state="running"), B), "a is still the leader"),
        ((A, Member(name="b", role="leader", state="starting")), "the new leader b is starting"),
        ((B,), "a is no member of the cluster now"),
        (
            (Member(name="a", role="replica", state="running", timeline=1), B),
            "a does not stream from b yet; it is running",
        ),
        ((Member(name="a", role="sync_standby", state="running", timeline=2), B), ""),
    ],
)
def test_what_a_switchover_lacks(members: tuple[Member, ...], lacking: str) -> None:
    assert not_done(Cluster(members=members), "a") == lacking


@pytest.mark.parametrize("body", [b"", b"[]", b'{"members": 1}', b'{"members": [{}]}', b"[1]"])
def test_what_is_no_cluster(body: bytes) -> None:
    with pytest.raises(ActionFailed, match="no list of members"):
        read_cluster(body)
