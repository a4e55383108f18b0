"""The program `fairwarning`."""

import click

from fairwarning import __version__
from fairwarning.cli.serve import serve
from fairwarning.cli.story import story

_EXAMPLES = """\b
Examples:
  fairwarning serve            the endpoint, with a starter fleet
  fairwarning story            the life of one event, told in the terminal
  fairwarning story --json     the same for a script, one JSON object a line
"""


@click.group(epilog=_EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Fairwarning: no machine goes down without fair warning."""


main.add_command(serve)
main.add_command(story)
