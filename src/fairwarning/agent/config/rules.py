"""Rules, and the policy of approvals, which the whole file has and a rule may change."""

import difflib
import re
from dataclasses import replace
from urllib.parse import urlsplit

from fairwarning.agent.config.actions import read_action
from fairwarning.agent.config.table import Table
from fairwarning.agent.model import (
    Action,
    Approve,
    Concerns,
    Hold,
    Peers,
    Phase,
    Rule,
    Shared,
    When,
)

TYPES = ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate")
SOURCES = ("Platform", "User")


def read_rule(table: Table, number: int, base: Approve) -> Rule:
    approve = table.table("approve")
    rule = Rule(
        name=table.text("name", f"rule {number}"),
        types=_words(table, "types", TYPES),
        sources=_words(table, "sources", SOURCES),
        description=_pattern(table, "description"),
        duration=table.span("duration"),
        resources=table.texts("resources"),
        tags=table.strings("tags"),
        time_left=table.span("time_left"),
        concerns=table.choice("concerns", Concerns, Concerns.ME),
        approve=base if approve is None else read_approve(approve, base),
        scheduled=_actions(table, Phase.SCHEDULED),
        started=_actions(table, Phase.STARTED),
        finished=_actions(table, Phase.FINISHED),
        cancelled=_actions(table, Phase.CANCELLED),
    )
    if approve is not None and rule.concerns is Concerns.OTHERS:
        table.wrong("approve", "events of others alone are never approved; take `approve` out")
    table.close()
    return rule


def read_approve(table: Table, base: Approve) -> Approve:
    """What is not said here stays as in `base`."""
    approve = replace(
        base,
        when=table.choice("when", When, base.when),
        shared=table.choice("shared", Shared, base.shared),
        lead_s=table.duration("lead", base.lead_s),
    )
    hold, peers = table.table("hold"), table.table("peers")
    if hold is not None:
        approve = replace(approve, hold=_hold(hold))
    if peers is not None:
        approve = replace(approve, peers=_peers(peers))
        if approve.shared is Shared.LEADER:
            table.wrong("peers", 'a leader asks no peers; set shared = "all", or take `peers` out')
    table.close()
    return approve


def _actions(table: Table, phase: Phase) -> tuple[Action, ...]:
    found = (read_action(each, phase) for each in table.tables(phase.value))
    return tuple(each for each in found if each is not None)


def _words(table: Table, key: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """A word that nobody knows may be younger than this agent; one that is almost known is not."""
    found = table.texts(key)
    for each in found:
        same = [word for word in known if word.lower() == each.lower()]
        near = difflib.get_close_matches(each.capitalize(), known, n=1)
        if not same and near:
            table.wrong(key, f"`{key}`: {each!r} is unknown; did you mean `{near[0]}`?")
    return found


def _pattern(table: Table, key: str) -> str:
    value = table.text(key)
    try:
        re.compile(value)
    except re.error as problem:
        table.wrong(key, f"`{key}` is no regular expression: {problem}")
        return ""
    return value


def _hold(table: Table) -> Hold | None:
    found = table.command("command")
    every_s = table.seconds("every", 10, least_s=1)
    table.close()
    if found is None:
        if "command" not in table.raw:
            table.wrong(
                None, "`command` is missing; while it exits with anything but 0, approval is held"
            )
        return None
    return Hold(command=found[0], is_shell=found[1], every_s=every_s)


def _peers(table: Table) -> Peers | None:
    directory, urls = table.text("directory"), table.texts("urls")
    table.close()
    if bool(directory) == bool(urls):
        table.wrong(None, "`peers` has either a `directory` that all share, or `urls` of agents")
    for url in urls:
        if urlsplit(url).scheme != "http" or not urlsplit(url).hostname:
            table.wrong("urls", f"{url!r} is no address of an agent, such as http://web-1:9169")
    return Peers(directory=directory, urls=urls)
