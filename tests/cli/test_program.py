"""The program as a whole: its help, its documentation, its completion."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from fairwarning.cli.main import COMMANDS, main
from tests.cli.conftest import Program
from tests.cli.fake import Fake
from tests.cli.values import ID, WEB, a_scope, an_event, an_instance
from tests.support.patience import HANG_S

PAGE = (Path(__file__).parents[2] / "docs/cli.md").read_text()
OURS = [name for name in COMMANDS if name not in ("serve", "demo")]


def commands(*path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Each command at or below this path; `serve` and `demo` say all in their own help."""
    context = click.Context(main)
    found: click.Command = main
    for name in path:
        assert isinstance(found, click.Group)
        child = found.get_command(context, name)
        assert child is not None
        found = child
    if isinstance(found, click.Group):
        for name in found.list_commands(context) if path else OURS:
            yield from commands(*path, name)
    else:
        yield path, found


ALL = list(commands())
IDS = [" ".join(path) for path, _ in ALL]


@pytest.mark.parametrize(("path", "command"), ALL, ids=IDS)
def test_every_command_is_documented_with_its_options(
    path: tuple[str, ...], command: click.Command
) -> None:
    assert re.search(rf"^(.*\| )?fairwarning {' '.join(path)}\b", PAGE, re.MULTILINE)
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            for name in parameter.opts:
                assert re.search(rf"{name}\b", PAGE), f"{name} is not in docs/cli.md"


@pytest.mark.parametrize(("path", "command"), ALL, ids=IDS)
def test_every_command_has_json_and_an_example(
    path: tuple[str, ...], command: click.Command
) -> None:
    options = {name for parameter in command.params for name in parameter.opts}
    assert "--json" in options
    assert command.epilog is not None
    assert "Example" in command.epilog
    assert f"fairwarning {' '.join(path)}" in command.epilog


def examples() -> list[str]:
    """From the manual page and from every help, without what the shell does around them."""
    text = "\n".join([PAGE.replace("\\\n", " "), *(command.epilog or "" for _, command in ALL)])
    found = re.findall(
        r"(?:^ *|\| |: |; )fairwarning ([^|&>\n`]+?)(?= {3,}|[|&>\n)`]|$)", text, re.M
    )
    return sorted({each.strip() for each in found if each.split()[0] in OURS})


@pytest.mark.parametrize("example", examples())
def test_every_example_is_one_that_the_program_takes(example: str) -> None:
    words = shlex.split(example)
    context = main.make_context("fairwarning", list(words))
    while isinstance(context.command, click.Group):
        name, command, rest = context.command.resolve_command(context, words)
        assert command is not None
        context, words = command.make_context(name, list(rest), parent=context), rest


@pytest.mark.parametrize(("path", "command"), ALL, ids=IDS)
def test_what_changes_something_may_be_given_a_reason(
    path: tuple[str, ...], command: click.Command
) -> None:
    reads = {"show", "list", "plan", "steps", "events", "history", "watch", "completion", "test",
             "record", "check", "check-config", "explain", "status",
             "backup", "verify", "restore", "migrate", "rules", "dnsmasq", "proxy",
             "libvirt"}  # fmt: skip
    options = {name for parameter in command.params for name in parameter.opts}
    assert ("--why" in options) == (path[-1] not in reads)


@pytest.mark.parametrize("name", OURS)
def test_the_list_of_commands_says_what_the_command_says(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert COMMANDS[name][1].rstrip(".") == command.get_short_help_str(1000).rstrip(".")


def test_help_loads_nothing_that_takes_long() -> None:
    code = (
        "import sys\nfrom fairwarning.cli.main import main\n"
        "try:\n main({}, prog_name='fairwarning')\n"
        "finally:\n print(sorted({{'httpx', 'rich', 'psycopg', 'uvloop'}} & set(sys.modules)))"
    )
    for arguments in (["--help"], ["events", "--help"], ["fleet", "apply", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", code.format(arguments)],
            capture_output=True, text=True, check=True, timeout=HANG_S,
        )  # fmt: skip
        assert "Examples" in done.stdout
        assert done.stdout.endswith("[]\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_and_how_to_install_it(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert "_FAIRWARNING_COMPLETE" in result.stdout
    assert "# To install: " in result.stdout
    if shell == "zsh":
        assert result.stdout.startswith("#compdef fairwarning")


def completions(*words: str, incomplete: str = "") -> list[str]:
    complete = BashComplete(main, {}, "fairwarning", "_FAIRWARNING_COMPLETE")
    return [item.value for item in complete.get_completions(list(words), incomplete)]


def test_commands_and_names_are_completed(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRWARNING_URL", fake.url)
    scope = a_scope(WEB, an_instance("web-0"), an_instance("db"))
    fake.on("GET /fleet", {"scopes": [scope], "next": None})
    fake.on("GET /events", {"events": [an_event()], "next": None})
    assert completions(incomplete="rest") == ["restart", "restore"]
    assert completions("restart", incomplete="w") == ["web-0"]
    assert completions("schedule", "reboot", incomplete="w") == ["web-0", "web"]
    assert completions("cancel") == [ID]
    sets = [a_scope(f"s/g/scale-set/workers/{n}", kind="scale-set", name="workers") for n in "01"]
    fake.on("GET /fleet", {"scopes": [scope, *sets], "next": None})
    assert completions("scale") == completions("upgrade") == ["workers"]
    assert completions("upgrade", "workers", incomplete="d") == ["db"]
    assert completions("policy") == ["web", "workers"]
    assert "--notice" in completions("schedule", incomplete="--not")


def test_completion_is_silent_without_a_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAIRWARNING_URL", "http://127.0.0.1:1")
    assert completions("restart", incomplete="w") == []
    assert capsys.readouterr() == ("", "")


def test_an_unknown_command_is_bad_usage(run: Program) -> None:
    assert run("explode").exit_code == 2
