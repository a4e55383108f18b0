"""A command that did not work says so in one line on standard error, and ends with exit code 1."""

from typing import IO, Any

import click

from fairwarning.common.escape import one_line


class Problem(click.ClickException):
    """What went wrong. `status`, `code` and `body` are the server's; they are empty if it gave no
    answer.

    `place` stands in front: the program, or the line of a file, as compilers write it.
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
