"""`fairwarning completion` prints the completion script of a shell."""

import click
from click.shell_completion import ShellComplete, get_completion_class

from fairwarning.cli.output import echo_json

_INSTALL = {
    "bash": "fairwarning completion bash > ~/.local/share/bash-completion/completions/fairwarning",
    "zsh": "fairwarning completion zsh > ~/.zfunc/_fairwarning  (with ~/.zfunc in fpath)",
    "fish": "fairwarning completion fish > ~/.config/fish/completions/fairwarning.fish",
}


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
