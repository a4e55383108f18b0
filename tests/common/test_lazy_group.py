"""A lazy group: its commands are listed in order, imported when used, and completed by prefix."""

import click
import pytest

from fairwarning.common.lazy_group import LazyGroup

GROUP = LazyGroup(
    "main",
    lazy={
        "serve": (f"{__name__}:serve", "Run the server."),
        "send": (f"{__name__}:serve", "Send something."),
        "apply": ("no.such.module:apply", "Is never imported."),
    },
)


@click.command()
def serve() -> None:
    """Run the server."""


@pytest.fixture
def context() -> click.Context:
    return click.Context(GROUP)


def test_a_command_is_imported_only_when_it_is_used(context: click.Context) -> None:
    assert GROUP.list_commands(context) == ["serve", "send", "apply"]
    command = GROUP.get_command(context, "serve")
    assert command is not None
    assert command.name == "serve"
    assert GROUP.get_command(context, "Serve") is None
    assert "Is never imported." in GROUP.get_help(context)
    with pytest.raises(ModuleNotFoundError):
        GROUP.get_command(context, "apply")


def test_completion_knows_the_commands_that_begin_so(context: click.Context) -> None:
    found = GROUP.shell_complete(context, "se")
    assert [(each.value, each.help) for each in found] == [
        ("serve", "Run the server."),
        ("send", "Send something."),
    ]
    assert "--help" in [each.value for each in GROUP.shell_complete(context, "--h")]
