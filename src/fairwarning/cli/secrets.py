"""Secrets on their way in: from a file, the environment, a pipe or a hidden prompt.

Never from the command line, because everybody on the machine can read that with `ps`.
"""

import os
import sys

import click

from fairwarning.common.text_files import read_text


def read_secret(what: str, *, option: str, file: str | None, variable: str) -> str:
    """The first that there is of: the file (`-` is standard input), the variable, standard
    input if it is a pipe, and the terminal.
    """
    if file is not None:
        text = _read_file(option, file)
    elif os.environ.get(variable):
        text = os.environ[variable]
    elif sys.stdin.isatty():
        text = click.prompt(what, hide_input=True, err=True)
    else:
        text = _read_file(option, "-")
    if not text.strip():
        raise click.UsageError(f"the {what} is empty; give it with {option} or in {variable}")
    return text.strip()


def _read_file(option: str, file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else read_text(file)
    except OSError as error:
        raise click.UsageError(f"{option} {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"what {option} gets from a pipe is not UTF-8 text") from None
