"""The whole file."""

from pathlib import Path as FilePath

from fairwarning.agent.config.rules import read_approve, read_rule
from fairwarning.agent.config.table import BadConfig, Mistake, Table
from fairwarning.agent.model import Approve, Config, Rule
from fairwarning.client.http import Address, BadAddress
from fairwarning.common.text_files import read_bytes
from fairwarning.common.toml_lines import Lines, Path
from fairwarning.common.toml_text import NotToml, parse_toml


def read_file(path: FilePath) -> Config:
    """Raises BadConfig, or OSError."""
    try:
        return read_config(read_bytes(path).decode())
    except UnicodeDecodeError:
        raise BadConfig([Mistake(line=1, message="the file is no UTF-8 text")]) from None


def read_config(text: str) -> Config:
    """Raises BadConfig with every mistake that can be told."""
    try:
        text, raw = parse_toml(text)
    except NotToml as problem:
        raise BadConfig([Mistake(line=problem.line, message=problem.message)]) from None
    mistakes: list[tuple[Path, str]] = []
    config = _read(Table(raw, (), mistakes))
    if mistakes:
        lines = Lines(text)
        raise BadConfig(Mistake(line=lines.of(path), message=said) for path, said in mistakes)
    return config


def _read(table: Table) -> Config:
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
        rules=_rules(table, policy),
    )
    table.close()
    return config


def _rules(table: Table, policy: Approve) -> tuple[Rule, ...]:
    rules: list[Rule] = []
    for number, each in enumerate(table.tables("rule"), 1):
        rule = read_rule(each, number, policy)
        if any(other.name == rule.name for other in rules):
            each.wrong("name", f"two rules are called {rule.name!r}; rename one")
        rules.append(rule)
    if not rules and "rule" not in table.raw:
        table.wrong(None, "there is no rule, so nothing would ever be done; add a [[rule]]")
    return tuple(rules)


def _endpoint(table: Table) -> str:
    value = table.text("endpoint")
    if value:
        try:
            Address(value)
        except BadAddress as problem:
            table.wrong("endpoint", f"`endpoint`: {problem}")
    return value


def _listen(table: Table, default: tuple[str, int] | None) -> tuple[str, int] | None:
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
    # Python refuses to make a number of thousands of digits.
    return text.isascii() and text.isdigit() and len(text) <= 5 and int(text) < 65_536
