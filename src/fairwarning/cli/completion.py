"""`fairwarning completion` prints the completion script of a shell.

The options of other commands complete names that only the server knows by the functions
`complete_instance` and so on. Without a server there are no suggestions.
"""

from collections.abc import Callable, Iterable
from contextlib import closing
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from fairwarning.cli.common_options import DEFAULT_URL, connect
from fairwarning.cli.lookup import UNFINISHED
from fairwarning.cli.output import echo_json
from fairwarning.scenarios import library

if TYPE_CHECKING:
    from fairwarning.cli.api_client import Api

_INSTALL = {
    "bash": "fairwarning completion bash > ~/.local/share/bash-completion/completions/fairwarning",
    "zsh": "fairwarning completion zsh > ~/.zfunc/_fairwarning  (with ~/.zfunc in fpath)",
    "fish": "fairwarning completion fish > ~/.config/fish/completions/fairwarning.fish",
}
ANSWER_S = 1.0  # A person who pressed Tab waits no longer.
_PAGE = 200  # One page of the API; a shell shows no more in a useful way.

Names = Callable[["Api"], Iterable[tuple[str, str]]]
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


@click.command(
    epilog="""\b
Examples:
  fairwarning completion bash > ~/.local/share/bash-completion/completions/fairwarning
  source <(fairwarning completion bash)
"""
)
@click.argument("shell", type=click.Choice(list(_INSTALL)))
@click.option("--json", "as_json", is_flag=True, help="Print the script as a JSON object.")
@click.pass_context
def completion(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Print the completion script of bash, zsh or fish.

    While you type, the script asks the server for the names of instances, scopes and events.
    """
    script = _script(ctx.find_root().command, shell)
    if as_json:
        echo_json({"shell": shell, "script": script})
    else:
        click.echo(script)


def _script(program: click.Command, shell: str) -> str:
    kind = get_completion_class(shell)
    assert kind is not None, "the choice holds only shells that click knows"
    made = kind(program, {}, "fairwarning", "_FAIRWARNING_COMPLETE")
    # Not kind.source: that of bash checks the local bash, and the script may be for another host.
    script = ShellComplete.source(made).strip()
    # This comes last, because `#compdef` of zsh counts only in the first line.
    return f"{script}\n# To install: {_INSTALL[shell]}"


def _completer(names: Names) -> Complete:
    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        given = ctx.params
        try:
            api = connect(
                given.get("url") or DEFAULT_URL,
                given.get("token_file"),
                given.get("ca_file"),
                answer_s=ANSWER_S,
            )
            with closing(api):
                found = dict(names(api))
        except Exception:
            return []  # a shell in the middle of a line is no place for an error message
        return [
            CompletionItem(name, help=help)
            for name, help in found.items()
            if name.startswith(incomplete)
        ]

    return complete


def _instances(api: "Api") -> Iterable[tuple[str, str]]:
    for scope in api.get("fleet", limit=_PAGE)["scopes"]:
        for instance in scope["instances"]:
            yield instance["name"], scope["id"]


def _scopes(api: "Api") -> Iterable[tuple[str, str]]:
    for scope in api.get("fleet", limit=_PAGE)["scopes"]:
        yield scope["name"], scope["id"]


def _scale_sets(api: "Api") -> Iterable[tuple[str, str]]:
    for scope in api.get("fleet", limit=_PAGE)["scopes"]:
        if scope["kind"] == "scale-set":
            yield scope["name"], scope["id"].rpartition("/")[0]


def _instances_and_scopes(api: "Api") -> Iterable[tuple[str, str]]:
    return [*_instances(api), *_scopes(api)]


def _events(api: "Api") -> Iterable[tuple[str, str]]:
    for event in api.get("events", phase=UNFINISHED, limit=_PAGE)["events"]:
        yield event["id"], f"{event['type']} of {', '.join(event['resources'])}"


def _rollouts(api: "Api") -> Iterable[tuple[str, str]]:
    for rollout in api.get("rollouts", limit=_PAGE)["rollouts"]:
        yield rollout["id"], f"{rollout['type']}, {rollout['phase']}"


def complete_scenario(
    _: click.Context, __: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of a scenario in the library, or of a file if no scenario fits."""
    names = [each for each in library.names() if each.startswith(incomplete)]
    return [CompletionItem(each) for each in names] or [CompletionItem(incomplete, type="file")]


complete_instance = _completer(_instances)
complete_scope = _completer(_scopes)
complete_scale_set = _completer(_scale_sets)
complete_target = _completer(_instances_and_scopes)
complete_event = _completer(_events)
complete_rollout = _completer(_rollouts)
