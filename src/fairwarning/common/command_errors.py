"""These errors end a command with exit code 1 and one line on standard error."""

from typing import IO, Any

import click

from fairwarning.common.escape import one_line


class Problem(click.ClickException):
    """A command failed; `message` says why.

    `status`, `code` and `body` are from the server's answer. They are empty if there was no answer.
    `place` is printed before the message: the program, or a file and line as compilers write it.
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
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.body = body or {}
        self.place = place

    def show(self, file: IO[Any] | None = None) -> None:
        code = f" ({self.code})" if self.code else ""
        click.echo(one_line(f"{self.place}: {self.message}{code}"), file=file, err=True)


class Disconnected(Exception):
    """The stream ended or could not be opened. The caller may try again."""
