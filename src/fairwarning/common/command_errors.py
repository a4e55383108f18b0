"""These errors end a command with exit code 1 and a message on standard error."""

from collections.abc import Iterable, Sequence
from typing import IO, Any

import click

from fairwarning.common.escape import one_line
from fairwarning.common.toml_table import Mistake


class Problem(click.ClickException):
    """A command failed; `message` says why.

    `status`, `code` and `body` are from the server's answer. They are empty if there was no answer.
    `place` is printed before the message: the program, or a file and line as compilers write it.
    `others` are further lines, such as further mistakes of a file, which are printed as they are.
    """

    exit_code = 1

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: str = "",
        body: dict[str, Any] | None = None,
        place: str = "fairwarning",
        others: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.body = body or {}
        self.place = place
        self.others = others

    def show(self, file: IO[Any] | None = None) -> None:
        code = f" ({self.code})" if self.code else ""
        click.echo(one_line(f"{self.place}: {self.message}{code}"), file=file, err=True)
        for each in self.others:
            click.echo(one_line(each), file=file, err=True)


def bad_file(name: str, mistakes: Iterable[Mistake]) -> Problem:
    """Return the error for a file with mistakes. Each is shown in a line with its place."""
    (place, message), *others = (
        (name if each.line is None else f"{name}:{each.line}", each.message) for each in mistakes
    )
    return Problem(message, place=place, others=[": ".join(each) for each in others])


class Disconnected(Exception):
    """The stream ended or could not be opened. The caller may try again."""
