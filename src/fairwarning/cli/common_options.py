"""What all commands that talk to the server share: the connection, its options, and the output
for people or as JSON.
"""

import functools
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from fairwarning.cli.output import draw, echo_json, make_console
from fairwarning.cli.table_model import Shown
from fairwarning.cli.times import from_wire
from fairwarning.common.escape import one_line
from fairwarning.common.text_files import read_text

if TYPE_CHECKING:
    from fairwarning.cli.api_client import Api
DEFAULT_URL = "http://127.0.0.1:8170"
Show = Callable[[datetime], Sequence[Shown]]


class ServerClock:
    """Estimates the server's time between two responses. Countdowns need the server's time."""

    def __init__(
        self, face: dict[str, Any], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.is_virtual = bool(face["virtual"])
        self.speed = float(face.get("speed", 0 if self.is_virtual else 1))
        """Seconds of this clock in each real second. At 0 the clock stands still."""
        self._monotonic = monotonic
        self._now = from_wire(face["now"])
        self._read_s = monotonic()

    def now(self) -> datetime:
        return self._now + timedelta(seconds=(self._monotonic() - self._read_s) * self.speed)

    def saw(self, at: datetime) -> None:
        """Move a virtual clock forward to `at`, the time of something that has happened."""
        if self.is_virtual and at > self.now():
            self._now, self._read_s = at, self._monotonic()


class Session:
    """One run of a command against one server."""

    def __init__(
        self, *, url: str, token_file: str | None, ca_file: str | None, as_json: bool
    ) -> None:
        self._url, self._token_file, self._ca_file = url, token_file, ca_file
        self.as_json = as_json

    @cached_property
    def api(self) -> "Api":
        api = connect(self._url, self._token_file, self._ca_file)
        click.get_current_context().call_on_close(api.close)
        return api

    @cached_property
    def clock(self) -> ServerClock:
        return ServerClock(self.api.get("clock"))

    def answer(self, body: Any, show: Show) -> None:
        """Print `body` with --json, or else what `show` returns for the server's time."""
        if self.as_json:
            echo_json(body)
        else:
            draw(make_console(is_capped=True), *show(self.clock.now()))

    def tell(self, *shown: Shown) -> None:
        """Print something besides the answer. With --json it goes to standard error."""
        draw(make_console(err=self.as_json, is_capped=True), *shown)

    def note(self, text: str) -> None:
        click.echo(one_line(text), err=True)


def connect(
    url: str, token_file: str | None, ca_file: str | None, answer_s: float | None = None
) -> "Api":
    from fairwarning.cli.api_client import Api  # noqa: PLC0415  help must not wait for httpx

    token = read_token(token_file)
    if answer_s is None:
        return Api(url, token=token, ca_file=ca_file)
    return Api(url, token=token, ca_file=ca_file, answer_s=answer_s)


def read_token(token_file: str | None) -> str:
    """Return the token in the file, or in FAIRWARNING_TOKEN if no file is given; "" is no token.

    Raises `click.UsageError` if the file cannot be read or the text is no token.
    """
    if token_file is None:
        token, place = os.environ.get("FAIRWARNING_TOKEN", "").strip(), "FAIRWARNING_TOKEN"
    else:
        token, place = _first_word_of(token_file), token_file
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise click.UsageError(f"{place} holds no token; one looks like fw_… and is one word")
    return token


def _first_word_of(path: str) -> str:
    try:
        return read_text(path).strip()
    except OSError as error:
        raise click.UsageError(f"--token-file {path} cannot be read: {error.strerror}") from None


def confirm(question: str, *, yes: bool) -> None:
    """Ask unless `yes` is true. Raises `click.Abort` if the user refuses.

    Raises `click.UsageError` if there is no terminal to ask on.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to ask on; say --yes if you mean it")
    click.confirm(question, abort=True, err=True)


def _check_url(_: click.Context, __: click.Parameter, value: str) -> str:
    try:
        parts = urlsplit(value)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        (parts.hostname or "").encode("idna")  # As the resolver will, which refuses long names.
    except ValueError:
        is_good = False
    is_good = is_good and value.isprintable()
    if not is_good or parts.username or parts.query or parts.fragment:
        raise click.BadParameter(f"{value!r} is no address; write one like {DEFAULT_URL}")
    return value


_CONNECTION = (
    click.option(
        "--url",
        envvar="FAIRWARNING_URL",
        default=DEFAULT_URL,
        callback=_check_url,
        metavar="URL",
        help=f"URL of the control plane (default: FAIRWARNING_URL, or {DEFAULT_URL}).",
    ),
    click.option(
        "--token-file",
        metavar="FILE",
        help="File that holds the token (default: the token in FAIRWARNING_TOKEN).",
    ),
    click.option(
        "--ca-file",
        envvar="FAIRWARNING_CA_FILE",
        metavar="FILE",
        help="PEM file of the authority that signed the server's certificate (default: "
        "FAIRWARNING_CA_FILE).",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the server's answer as JSON."),
)


def connected(command: Callable[..., None]) -> Callable[..., None]:
    """Add the connection's options to a command, and pass it a `Session` as first argument."""

    @functools.wraps(command)
    def run(
        *args: Any,
        url: str,
        token_file: str | None,
        ca_file: str | None,
        as_json: bool,
        **rest: Any,
    ) -> None:
        session = Session(url=url, token_file=token_file, ca_file=ca_file, as_json=as_json)
        command(session, *args, **rest)

    decorated: Callable[..., None] = run
    for option in reversed(_CONNECTION):
        decorated = option(decorated)
    return decorated


why_option = click.option(
    "--why",
    metavar="TEXT",
    help="Reason for the change, which the history records.",
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


def limit_option(noun: str, default: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option that limits how many of the noun are listed."""
    return click.option(
        "--limit",
        type=click.IntRange(1),
        default=default,
        show_default=True,
        metavar="N",
        help=f"How many {noun} are listed at most.",
    )
