"""How a command says that it did not work: one line on standard error, and exit code 1."""

from typing import IO, Any

import click

from fairwarning.common.escape import one_line


class Problem(click.ClickException):
    """`status`, `code` and `body` are the server's; without an answer they are empty.

    `place` stands in front: the program, or the line of a file, as compilers say it.
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
    """The stream ended or could not be opened, and may come back."""
