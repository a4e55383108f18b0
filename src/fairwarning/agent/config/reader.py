"""Reads the agent's config file: its top level, its rules and its approval policy."""

import difflib
import re
from dataclasses import replace
from pathlib import Path as FilePath
from urllib.parse import urlsplit

from fairwarning.agent.config.actions import read_action
from fairwarning.agent.config.model import (
    Action,
    Approve,
    Concerns,
    Config,
    Hold,
    HostShutdown,
    Peers,
    Phase,
    Rule,
    Shared,
    When,
)
from fairwarning.agent.config.table import BadConfig, ConfigTable
from fairwarning.client.http import Address, BadAddress
from fairwarning.common.text_files import read_bytes
from fairwarning.common.toml_lines import Path
from fairwarning.common.toml_table import Mistake, with_lines
from fairwarning.common.toml_text import NotToml, parse_toml

TYPES = ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate")
SOURCES = ("Platform", "User")


def read_file(path: FilePath) -> Config:
    """Read the config from a file.

    Raises BadConfig if there are mistakes, and OSError if the file cannot be read.
    """
    try:
        return read_config(read_bytes(path).decode())
    except UnicodeDecodeError:
        raise BadConfig([Mistake(line=1, message="the file is no UTF-8 text")]) from None


def read_config(text: str) -> Config:
    """Read the config from a text. Raises BadConfig with all mistakes at once."""
    try:
        text, raw = parse_toml(text)
    except NotToml as problem:
        raise BadConfig([Mistake(line=problem.line, message=problem.message)]) from None
    mistakes: list[tuple[Path, str]] = []
    config = _read(ConfigTable(raw, (), mistakes))
    if mistakes:
        raise BadConfig(with_lines(mistakes, text))
    return config


def _read(table: ConfigTable) -> Config:
    defaults = Config()
    approve = table.table("approve")
    policy = Approve() if approve is None else read_approve(approve, Approve())
    config = Config(
        endpoint=_endpoint(table),
        name=table.text("name"),
        state=table.text("state", defaults.state),
        margin_s=table.seconds("margin", defaults.margin_s),
        ahead_s=table.seconds("ahead", defaults.ahead_s),
        listen=_listen(table, defaults.listen),
        approve=policy,
        host_shutdown=_host_shutdown(table),
        rules=_rules(table, policy),
    )
    table.close()
    return config


def _rules(table: ConfigTable, policy: Approve) -> tuple[Rule, ...]:
    rules: list[Rule] = []
    for number, each in enumerate(table.tables("rule"), 1):
        rule = read_rule(each, number, policy)
        if any(other.name == rule.name for other in rules):
            each.wrong("name", f"two rules are called {rule.name!r}; rename one")
        rules.append(rule)
    if not rules and "rule" not in table.raw:
        table.wrong(None, "there is no rule, so nothing would ever be done; add a [[rule]]")
    return tuple(rules)


def _host_shutdown(table: ConfigTable) -> HostShutdown:
    inner = table.table("host_shutdown")
    if inner is None:
        return HostShutdown()
    found = HostShutdown(delay=inner.flag("delay"))
    inner.close()
    return found


def _endpoint(table: ConfigTable) -> str:
    value = table.text("endpoint")
    if value:
        try:
            Address(value)
        except BadAddress as problem:
            table.wrong("endpoint", f"`endpoint`: {problem}")
    return value


def _listen(table: ConfigTable, default: tuple[str, int] | None) -> tuple[str, int] | None:
    value = table.take("listen", str)
    if value is None:
        return default
    host, _, port = value.rpartition(":")
    if host and _is_port(port):
        return host.strip("[]"), int(port)
    if value:
        table.wrong("listen", '`listen` is HOST:PORT such as 127.0.0.1:9169, or "" for none')
    return None


def _is_port(text: str) -> bool:
    # The length is checked first, because Python refuses to convert thousands of digits.
    return text.isascii() and text.isdigit() and len(text) <= 5 and int(text) < 65_536


def read_rule(table: ConfigTable, number: int, base: Approve) -> Rule:
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


def read_approve(table: ConfigTable, base: Approve) -> Approve:
    """Return the approval policy in a table. Keys that are missing have their value in `base`."""
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


def _actions(table: ConfigTable, phase: Phase) -> tuple[Action, ...]:
    found = (read_action(each, phase) for each in table.tables(phase.value))
    return tuple(each for each in found if each is not None)


def _words(table: ConfigTable, key: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Return a list of words, and note a mistake for a word that is nearly a known word.

    Other unknown words are allowed, because the service may be newer than this agent.
    """
    found = table.texts(key)
    for each in found:
        same = [word for word in known if word.lower() == each.lower()]
        near = difflib.get_close_matches(each.capitalize(), known, n=1)
        if not same and near:
            table.wrong(key, f"`{key}`: {each!r} is unknown; did you mean `{near[0]}`?")
    return found


def _pattern(table: ConfigTable, key: str) -> str:
    value = table.text(key)
    try:
        re.compile(value)
    except re.error as problem:
        table.wrong(key, f"`{key}` is no regular expression: {problem}")
        return ""
    return value


def _hold(table: ConfigTable) -> Hold | None:
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


def _peers(table: ConfigTable) -> Peers | None:
    directory, urls = table.text("directory"), table.texts("urls")
    table.close()
    if bool(directory) == bool(urls):
        table.wrong(None, "`peers` has either a `directory` that all share, or `urls` of agents")
    for url in urls:
        if urlsplit(url).scheme != "http" or not urlsplit(url).hostname:
            table.wrong("urls", f"{url!r} is no address of an agent, such as http://web-1:9169")
    return Peers(directory=directory, urls=urls)
