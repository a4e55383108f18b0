"""No input of any command ends in a traceback.

Every command is found by walking the program, and each of its options and arguments is given
values and files that nobody can use. The rest of the call is good, so that the bad part is
reached, and is such that no call goes on for long: what would start a server, an agent or a
handler is stopped by something else that is wrong with it.
"""

import json
import logging
import random
import re
import signal
import socket
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from fairwarning.cli.main import main
from fairwarning.testing import Server
from tests.cli import bad_values
from tests.cli.conftest import VARIABLES, Program, said

TEXTS_EACH = 8
SHARED_EACH = 2
"""Of an option that nearly every command has."""
SHARED = ("--url", "--token-file", "--ca-file", "--why")
BROKEN_EACH = 8

CALLS: dict[str, dict[str, str | None]] = {
    "serve": {"--metadata": "{taken}", "--control": "{taken}", "--store": "memory:"},
    "fleet apply": {"file": "{fleet}", "--yes": None},
    "fleet plan": {"file": "{fleet}"},
    "fleet remove": {"name": "nobody", "--yes": None},
    "fleet show": {},
    "fleet import libvirt": {"--uri": "test:///default"},
    "schedule": {"type": "reboot", "targets": "web-0"},
    "rollout plan": {"--type": "reboot", "scopes": "web"},
    "rollout start": {"--type": "reboot", "scopes": "web", "--yes": None},
    "rollout list": {},
    "rollout show": {"id": "nobody"},
    "rollout steps": {"id": "nobody"},
    "rollout pause": {"id": "nobody"},
    "rollout resume": {"id": "nobody"},
    "rollout cancel": {"id": "nobody"},
    "restart": {"instance": "web-0"},
    "redeploy": {"instance": "web-0"},
    "reimage": {"instance": "web-0"},
    "start": {"instance": "web-0"},
    "stop": {"instance": "web-0"},
    "deallocate": {"instance": "web-0"},
    "delete": {"instance": "web-0"},
    "evict": {"instance": "web-0"},
    "replace": {"instance": "workers_0"},
    "scale": {"set": "workers", "capacity": "2", "--yes": None},
    "model": {"set": "workers", "--terminate-notice": "10m"},
    "upgrade": {"set": "workers"},
    "policy": {"scope": "web", "--approve-reboot": None},
    "events": {},
    "event show": {"id": "nobody"},
    "approve": {"id": "nobody"},
    "cancel": {"id": "nobody"},
    "postpone": {"id": "nobody", "--notice": "1h"},
    "watch": {"--url": "{closed}", "--token-file": "{missing}"},
    "history": {},
    "scenario list": {},
    "scenario show": {"name": "user-reboot"},
    "scenario run": {"scenario": "user-reboot"},
    "fault set": {"kind": "slow", "--delay": "1s", "--instance": "web-0"},
    "fault clear": {},
    "fault list": {},
    "record": {"--for": "0s", "--endpoint": "{closed}", "--output": "{folder}/recording"},
    "check": {"command": "/nowhere/handler", "--no-namespace": None},
    "driver list": {},
    "driver check": {"name": "nobody"},
    "clock show": {},
    "clock advance": {"by": "1s"},
    "token create": {"--role": "viewer"},
    "token list": {},
    "token revoke": {"id": "nobody"},
    "network rules": {"file": "{missing}"},
    "network dnsmasq": {"file": "{missing}"},
    "network proxy": {"file": "{missing}"},
    "backup": {"file": "{folder}/backup", "--store": "sqlite:///{missing}"},
    "verify": {"file": "{missing}"},
    "restore": {"file": "{missing}", "--store": "sqlite:///{folder}/restored.db"},
    "migrate": {"--store": "sqlite:///{folder}/migrated.db"},
    "azure-setup": {},
    "notification add": {"kind": "webhook", "--name": "ops"},
    "notification list": {},
    "notification test": {"id": "nobody"},
    "notification remove": {"id": "nobody"},
    "notification dead-letters": {},
    "demo": {},
    "agent": {"--config": "{agent}", "--dry-run": None, "--once": None},
    "agent check-config": {"file": "{agent}"},
    "agent explain": {"--config": "{agent}", "--type": "reboot"},
    "agent test": {"type_": "reboot", "--config": "{agent}"},
    "agent status": {"--config": "{agent}"},
    "completion": {"shell": "bash"},
}
"""A call of each command that ends by itself. `None` is an option without a value."""
INSTEAD: dict[tuple[str, str], dict[str, str | None]] = {
    ("record", "--for"): {"--output": "{folder}"},
    ("scenario run", "--speed"): {"--target": "nobody"},
}
"""What else a call needs to end by itself, while this option has a value that may be good."""
GOOD_FILES = {
    ("serve", "--fleet"): bad_values.FLEET,
    ("serve", "--config"): bad_values.SERVE,
    ("fleet apply", "file"): bad_values.FLEET,
    ("fleet plan", "file"): bad_values.FLEET,
    ("scenario run", "scenario"): bad_values.SCENARIO,
    ("agent", "--config"): bad_values.AGENT,
    ("agent check-config", "file"): bad_values.AGENT,
    ("agent explain", "--config"): bad_values.AGENT,
}
BEFORE = re.compile(
    r"Usage: |Try '|       |warning: |Recording from |\d{4}-\d\d-\d\dT\S+ (INFO|WARNING) |$"
)
"""Lines that may come before the one that says what is wrong."""
MISTAKE = re.compile(r"(Error|fairwarning|.*\S): \S")


def leaves(command: click.Command, *path: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield " ".join(path), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from leaves(found, *path, name)


COMMANDS = dict(leaves(main))


class Place:
    """Files, a server and the environment that the calls refer to."""

    def __init__(self, folder: Path, url: str, taken: str, closed: str) -> None:
        self.folder = folder
        names = {"fleet": bad_values.FLEET, "agent": bad_values.AGENT, **bad_values.FILES}
        for name, content in names.items():
            (folder / name).write_bytes(content)
        (folder / "loop").symlink_to(folder / "loop")
        (folder / "empty-folder").mkdir()
        self.words = {
            **{each: str(folder / each) for each in ("fleet", "agent", "missing")},
            "folder": str(folder),
            "taken": taken,
            "closed": closed,
        }
        self.environment: dict[str, str | None] = {
            **{f"FAIRWARNING_{name}": None for name in (*VARIABLES, "AGENT_CONFIG")},
            "FAIRWARNING_URL": url,
            "FAIRWARNING_METADATA_URL": closed,
            "FAIRWARNING_NOTIFICATION_URL": "http://127.0.0.1:1/",
            "PATH": str(folder / "empty-folder"),
        }

    def files(self) -> list[str]:
        """Of bad content, no files at all, and one that never ends."""
        others = ("", "loop", "missing", "missing/x", "fleet/x", "x" * 300, bad_values.NOT_UTF8)
        names = [*bad_values.FILES, *others]
        return [*(str(self.folder / each) for each in names), "/dev/null", "/dev/zero"]

    def run(
        self,
        arguments: Sequence[str],
        *,
        input: bytes | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> Result:
        env = {**self.environment, **(variables or {})}
        return CliRunner().invoke(main, arguments, input=input, env=env)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        socket.socket() as closed,
        Server(fleet=bad_values.FLEET.decode()) as server,
    ):
        closed.bind(("127.0.0.1", 0))  # Nobody else gets this port, and nobody listens there.
        yield Place(
            tmp_path_factory.mktemp("bad-input"),
            server.control_url,
            f"127.0.0.1:{taken.getsockname()[1]}",
            f"http://127.0.0.1:{closed.getsockname()[1]}",
        )


@pytest.fixture(autouse=True)
def as_before(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Some commands set what holds for the whole process, or write a file where they are."""
    monkeypatch.chdir(place.folder / "empty-folder")
    on_term = signal.getsignal(signal.SIGTERM)
    root = logging.getLogger()
    handlers, level = [*root.handlers], root.level
    yield
    signal.signal(signal.SIGTERM, on_term)
    root.handlers[:] = handlers
    root.setLevel(level)


def test_every_command_has_a_call_here() -> None:
    assert set(CALLS) == set(COMMANDS)


LISTS_ALL = (
    "agent check-config", "fleet apply", "fleet plan", "scenario run",
    "network rules", "network dnsmasq", "network proxy",
)  # fmt: skip
"""Commands that print a line for each mistake of a file."""


@pytest.mark.parametrize("name", COMMANDS)
def test_no_input_of_a_command_ends_in_a_traceback(place: Place, name: str) -> None:
    found = {
        shortened(arguments): wrong
        for arguments in calls(place, name)
        if (wrong := fault_of(place.run(arguments), lists_all=name in LISTS_ALL))
    }
    assert not found


@pytest.mark.parametrize(
    ("arguments", "variable"),
    [
        (("events",), "FAIRWARNING_URL"),
        (("events",), "FAIRWARNING_TOKEN"),
        (("events", "--url", "https://127.0.0.1:1"), "FAIRWARNING_CA_FILE"),
        (("notification", "add", "webhook", "--name", "ops"), "FAIRWARNING_NOTIFICATION_URL"),
        (("notification", "add", "webhook", "--name", "ops"), "FAIRWARNING_NOTIFICATION_SECRET"),
        (("agent", "check-config"), "FAIRWARNING_AGENT_CONFIG"),
        (("agent", "explain", "--config", "{agent}"), "FAIRWARNING_METADATA_URL"),
        (("agent", "--once", "--dry-run", "--config", "{agent}"), "FAIRWARNING_METADATA_URL"),
        (("record", "--for", "0s", "--output", "x"), "FAIRWARNING_METADATA_URL"),
    ],
)
def test_no_variable_of_the_environment_ends_in_a_traceback(
    place: Place, arguments: Sequence[str], variable: str
) -> None:
    values = [each for each in bad_values.URLS if "://" in each]
    if variable != "FAIRWARNING_METADATA_URL":  # There, a word alone is a host to look up.
        values += random.Random(variable).sample(bad_values.TEXTS, 2 * TEXTS_EACH)
    given = [each.format(**place.words) for each in arguments]
    found = {
        value[:80]: wrong
        for value in values
        if (wrong := fault_of(place.run(given, variables={variable: value}), lists_all=True))
    }
    assert not found


@pytest.mark.parametrize(
    "arguments",
    [
        ("fleet", "apply", "-", "--yes"),
        ("notification", "add", "webhook", "--name", "ops"),
        ("notification", "add", "webhook", "--name", "ops", "--url-file", "-"),
    ],
)
def test_nothing_on_standard_input_ends_in_a_traceback(
    place: Place, arguments: Sequence[str]
) -> None:
    variables = {"FAIRWARNING_NOTIFICATION_URL": ""}
    found = {
        name: wrong
        for name, content in bad_values.FILES.items()
        if (wrong := fault_of(place.run(arguments, input=content, variables=variables)))
    }
    assert not found


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("scenario", "run", "user-reboot", "--speed", "nan"), "is no number"),
        (("scenario", "run", "user-reboot", "--speed", "1e-300"), "is not in the range"),
        (("serve", "--control", "{taken}", "--clock-speed", "nan"), "is no number"),
        (("fault", "set", "slow", "--probability", "nan"), "is no number"),
        (("serve", "--control", f"127.0.0.1:{bad_values.DIGITS}"), "is no HOST:PORT"),
        (("serve", "--control", f"{bad_values.NOT_UTF8}:1"), "is no HOST:PORT"),
        (("serve", "--control", "{taken}", "--fleet", "/dev/zero"), "larger than 64 MB"),
        (("scenario", "run", "{folder}/far-apart.jsonl"), "is no line of a recording"),
        (("scenario", "run", "{folder}/last-date.jsonl"), "is no line of a recording"),
        (("record", "--for", "0s", "--output", "/dev/full"), "choose another --output"),
        (("record", "--output", "x", "--endpoint", f"http://{'a' * 70}"), "is no address"),
        (("events", "--url", f"http://{'a' * 70}"), "is no address"),
        (("events", "--scope", bad_values.NOT_UTF8), "is not UTF-8 text"),
        (("event", "show", "x" * 100_000), "shorten or correct it"),
        (("token", "create", "--role", "viewer", "--store", "sqlite:////"), "is no file"),
        (("agent", "status", "--config", "{agent}", "--state", "x" * 300), "cannot be read"),
        (("events", "a\nb", "\x1b[31m"), "(a b �[31m)"),
    ],
)
def test_a_mistake_is_said_in_one_line(place: Place, arguments: Sequence[str], why: str) -> None:
    result = place.run([each.format(**place.words) for each in arguments])
    assert result.exit_code in (1, 2)
    assert fault_of(result) is None
    assert why in result.stderr


@pytest.mark.parametrize("content", [f"margin = {bad_values.DIGITS}", "a = " + "[" * 5_000])
def test_a_number_or_a_nesting_without_end_has_its_line(tmp_path: Path, content: str) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(f"\n{content}\n")
    result = CliRunner().invoke(main, ["agent", "check-config", str(file)])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{file}:2: ")


def test_a_name_is_taken_in_the_store_too(tmp_path: Path) -> None:
    program = Program("http://127.0.0.1:1")
    create = ("token", "create", "--role", "viewer", "--store", f"sqlite:///{tmp_path}/fw.db")
    assert program(*create, "--name", "ci").exit_code == 0
    assert "'ci' is taken; choose another" in said(program(*create, "--name", "ci"))


def test_a_name_in_the_store_is_as_strict_as_that_of_the_api(tmp_path: Path) -> None:
    program = Program("http://127.0.0.1:1")
    create = ("token", "create", "--role", "viewer", "--store", f"sqlite:///{tmp_path}/fw.db")
    assert "/name" in said(program(*create, "--name", "two\nlines"))


def test_a_token_of_the_store_lasts_as_long_as_asked(tmp_path: Path) -> None:
    program = Program("http://127.0.0.1:1")
    create = ("token", "create", "--role", "operator", "--store", f"sqlite:///{tmp_path}/fw.db")
    for name, more in (("short", ["--expires", "1h"]), ("long", [])):
        assert program(*create, "--name", name, *more).exit_code == 0
    with closing(sqlite3.connect(tmp_path / "fw.db")) as store:
        rows = store.execute("SELECT body FROM records WHERE kind = 'token'").fetchall()
    found = {each["name"]: each for each in (json.loads(row[0]) for row in rows)}
    assert found["long"]["expires_ms"] is None
    lasts_ms = found["short"]["expires_ms"] - found["short"]["created_ms"]
    assert 0 < lasts_ms <= 3_600_000
    assert found["short"]["role"] == "operator"


def calls(place: Place, name: str) -> Iterator[list[str]]:
    words = name.split()
    yield [*words, "--\x1b[31m\nno-such-option"]
    yield [*words, "--", *["\x1b\n\udcff"] * 9]
    for parameter in COMMANDS[name].params:
        option = key_of(parameter)
        if isinstance(parameter, click.Option) and parameter.is_flag:
            yield [*words, f"{option}=\x1b"]
            continue
        for value in values_of(place, name, parameter):
            yield call(place, name, option, value)


def values_of(place: Place, name: str, parameter: click.Parameter) -> Iterator[str]:
    option, metavar = key_of(parameter), parameter.metavar or ""
    dice = random.Random(f"{name} {option}")
    is_file = isinstance(parameter.type, click.Path) or "FILE" in metavar
    if option in SHARED:
        every = {"--url": bad_values.URLS, "--why": bad_values.TEXTS}
        yield from dice.sample(every.get(option) or place.files(), SHARED_EACH)
    elif metavar == "HOST:PORT":
        yield from bad_values.ADDRESSES
    elif metavar == "URL":
        yield from bad_values.URLS
    elif metavar == "JSON":
        yield from bad_values.TEXTS
    else:
        yield from dice.sample(bad_values.TEXTS, TEXTS_EACH)
        yield from place.files() if is_file else ()
    for content in broken_files(name, option):
        file = place.folder / f"broken{'.jsonl' if content.startswith(b'{') else '.toml'}"
        file.write_bytes(content)
        yield str(file)


def broken_files(name: str, option: str) -> Iterator[bytes]:
    good = GOOD_FILES.get((name, option))
    if good is not None:
        yield from bad_values.broken(good, BROKEN_EACH, f"{name} {option}")
    if name == "scenario run" and option == "scenario":
        yield from bad_values.broken(bad_values.RECORDING, BROKEN_EACH, "recording")


def call(place: Place, name: str, bad: str, value: str) -> list[str]:
    """The good call of a command, with one of its options or arguments replaced."""
    given: dict[str, str | None] = {**CALLS[name], **INSTEAD.get((name, bad), {}), bad: value}
    options: list[str] = []
    arguments: list[str] = []
    for parameter in COMMANDS[name].params:
        keys = [parameter.name or "", *parameter.opts, *parameter.secondary_opts]
        for key in [each for each in dict.fromkeys(keys) if each in given]:
            text = given[key]
            if text is not None and key != bad:
                text = text.format(**place.words)
            if isinstance(parameter, click.Argument):
                arguments.append(text or "")
            else:
                options += [key] if text is None else [key, text]
    return [*name.split(), *options, *(["--", *arguments] if arguments else [])]


def key_of(parameter: click.Parameter) -> str:
    is_argument = isinstance(parameter, click.Argument)
    return (parameter.name or "") if is_argument else parameter.opts[-1]


def fault_of(result: Result, *, lists_all: bool = False) -> str | None:
    """What is wrong with how a command ended. `lists_all`: it may say several mistakes."""
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return repr(result.exception)[:300]
    if result.exit_code == 0:
        return None
    said = [each for each in result.stderr.split("\n") if not BEFORE.match(each)]
    is_one = bool(said) if lists_all else len(said) == 1
    is_shown = all(each.isprintable() for each in said)
    if result.exit_code in (1, 2) and is_one and is_shown and MISTAKE.match(said[-1]):
        return None
    return f"exit code {result.exit_code} and {result.stderr[-300:]!r}"


def shortened(arguments: Sequence[str]) -> str:
    return repr([each[:80] for each in arguments])
