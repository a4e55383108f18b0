"""Has Patroni switch over to another member if the local one is the leader, and waits for the end.

The undo does nothing, or with `switch_back` makes the member the leader again. A cut-off `do` that
is called again finds the switchover done, or asks for it again, which Patroni takes as the same.
"""

import asyncio
import logging
from time import monotonic

from fairwarning.agent.actions.base import ActionFailed, Context, settings_of
from fairwarning.agent.actions.http import Answer
from fairwarning.agent.actions.patroni_api import Cluster, PatroniApi, said
from fairwarning.agent.config.model import Action, Patroni

WAS_LEADER = "was_leader"
"""The name of the local member. It is kept only if it was the leader."""
SUCCESSOR = "successor"
POLL_S = 0.5  # Patroni's own loop takes seconds.
MARGIN_S = 2.0
"""The action gives up so long before it would be cut off, so that it can say what is missing."""
_UNKNOWN = "status unknown"

_log = logging.getLogger(__name__)


class PatroniHandler:
    async def do(self, action: Action, context: Context) -> None:
        settings, ends_s = settings_of(action, Patroni), _ends_s(context)
        api = PatroniApi(settings)
        me = (context.kept or {}).get(WAS_LEADER)
        if await api.is_leader():
            me = await _hand_over(settings, api, context, ends_s)
        elif me is None:
            _log.info("the local PostgreSQL is not the leader, so there is nothing to switch over")
            return
        cluster = await _until_follows(api, me, ends_s)
        assert cluster.leader is not None, "a member follows only a leader"
        context.keep(SUCCESSOR, cluster.leader.name)

    async def undo(self, action: Action, context: Context) -> None:
        settings, kept = settings_of(action, Patroni), context.kept or {}
        me = kept.get(WAS_LEADER)
        api, ends_s = PatroniApi(settings), _ends_s(context)
        if not settings.switch_back or me is None or await api.is_leader():
            return
        leader = (await api.cluster()).leader
        if leader is not None and leader.name != kept.get(SUCCESSOR, leader.name):
            _log.info("somebody else has made %s the leader; it is left so", leader.name)
            return
        cluster = await _until_follows(api, me, ends_s)
        assert cluster.leader is not None, "a member follows only a leader"
        answer = await api.switch_over(cluster.leader.name, me, ends_s - monotonic())
        while not await api.is_leader():
            if answer.status != 200 and _UNKNOWN not in said(answer):
                raise ActionFailed(refusal(answer, cluster, cluster.leader.name))
            await _pause(ends_s, f"{me} is not the leader yet")


async def _hand_over(settings: Patroni, api: PatroniApi, context: Context, ends_s: float) -> str:
    """Ask for the switchover. Return the name of the local member, which is no longer the leader,
    unless Patroni does not know yet.
    """
    cluster = await api.cluster()
    if cluster.leader is None:
        raise ActionFailed("the cluster has no leader now, so nothing can be switched over")
    me = cluster.leader.name
    if len(cluster.members) == 1:
        raise ActionFailed(f"the cluster has no member but {me}, so nobody can take over")
    context.keep(WAS_LEADER, me)
    candidate = context.render(settings.candidate)
    _log.info("%s is the leader; asking Patroni to switch over to %s", me, candidate or "another")
    answer = await api.switch_over(me, candidate, ends_s - monotonic())
    if answer.status != 200 and _UNKNOWN not in said(answer) and await api.is_leader():
        # If it is no longer the leader, then another request, perhaps ours before a restart, won.
        raise ActionFailed(refusal(answer, cluster, me))
    return me


async def _until_follows(api: PatroniApi, me: str, ends_s: float) -> Cluster:
    """Wait until another member leads and this one follows it, and return that cluster."""
    while lacking := not_done(cluster := await api.cluster(), me):
        await _pause(ends_s, lacking)
    return cluster


async def _pause(ends_s: float, lacking: str) -> None:
    if monotonic() >= ends_s:
        raise ActionFailed(f"the switchover is not done in time: {lacking}")
    await asyncio.sleep(POLL_S)


def not_done(cluster: Cluster, me: str) -> str:
    """Return what a switchover away from this member still lacks. It is empty if it is done."""
    leader, member = cluster.leader, cluster.member(me)
    if leader is None:
        return "the cluster has no leader yet"
    if leader.name == me:
        return f"{me} is still the leader"
    if leader.state != "running":
        return f"the new leader {leader.name} is {leader.state}"
    if member is None:
        return f"{me} is no member of the cluster now"
    # Patroni before 3.1 says `running` also of a member that streams.
    is_on_its_timeline = member.state == "running" and member.timeline == leader.timeline
    if member.state == "streaming" or is_on_its_timeline:
        return ""
    return f"{me} does not stream from {leader.name} yet; it is {member.state}"


def refusal(answer: Answer, cluster: Cluster, leader: str) -> str:
    """Return why Patroni does not switch over, in words that say what to do."""
    if answer.status == 401:
        return "Patroni refuses the credentials; set `user` and `password` as in its restapi"
    if answer.status == 403:
        return "Patroni does not let us, by the allowlist of its restapi"
    if answer.status == 400 and cluster.is_paused:
        return "the cluster is paused; run `patronictl resume`, or name a `candidate`"
    others = ", ".join(f"{m.name} is {m.state}" for m in cluster.members if m.name != leader)
    return f"Patroni does not switch over: {said(answer)} ({others})"


def _ends_s(context: Context) -> float:
    return monotonic() + max(1.0, context.time_left_s - MARGIN_S)
