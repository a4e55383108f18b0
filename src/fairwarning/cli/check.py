"""`fairwarning check`: does a handler of scheduled events do what it should?"""

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from fairwarning.cli.click_types import duration
from fairwarning.cli.output import echo_json
from fairwarning.common.command_errors import Problem
from fairwarning.common.durations import parse_duration_ms

if TYPE_CHECKING:
    from fairwarning.handler_check.model import Report, Result

_EXAMPLES = """\b
Examples:
  fairwarning check -- python3 my_handler.py
  fairwarning check --junit report.xml --html report.html -- ./handler --verbose
  fairwarning check --no-namespace -- ./handler --endpoint {url}
  fairwarning check --story neighbour --story preempt -- ./handler
  fairwarning check --list
"""
_JOBS_MIN = 4
"""Stories mostly wait for the handler to ask again."""


class Usage(Problem):
    exit_code = 2


class _BeforeTheCommand(click.Command):
    """Options of the check stand before the handler's command; behind it, they are its own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = [*args]
        left = super().parse_args(ctx, args)
        command: tuple[str, ...] = ctx.params.get("command", ())
        is_separated = "--" in given[: len(given) - len(command)]
        if not is_separated:
            self._refuse_options(command)
        return left

    def _refuse_options(self, command: tuple[str, ...]) -> None:
        known = {name for each in self.params for name in (*each.opts, *each.secondary_opts)}
        for word in command[1:]:
            option = word.partition("=")[0]
            if option.startswith("-") and option in known:
                raise Usage(
                    f"{option} comes after the handler's command, so the handler would get it; if "
                    f"you mean the check, write it before: fairwarning check {option} … -- "
                    f"{command[0]}; if you mean the handler, write -- before its command"
                )


@click.command(
    cls=_BeforeTheCommand,
    epilog=_EXAMPLES,
    # What comes after the command's name is the command's own.
    context_settings={"allow_interspersed_args": False},
)
@click.option("--story", "names", multiple=True, metavar="NAME", help="Only this one (repeatable).")
@click.option("--skip", multiple=True, metavar="NAME", help="All but this one (repeatable).")
@click.option(
    "--patience",
    type=duration,
    default="10s",
    show_default=True,
    metavar="D",
    help="How long the handler may take for each thing that it should do. More than two polls.",
)
@click.option("--jobs", type=click.IntRange(1, 64), help="Stories at the same time.")
@click.option(
    "--namespace/--no-namespace",
    default=None,
    help="Play in a network with the real 169.254.169.254 in it and nothing else; the default "
    "where the system lets us.",
)
@click.option(
    "--never-approves",
    is_flag=True,
    help="The handler drains and leaves approving to others; its log shows that it drained.",
)
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), help="JUnit XML.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="A page to read.")
@click.option("--json", "as_json", is_flag=True, help="The whole report as one JSON object.")
@click.option("--list", "lists", is_flag=True, help="List the stories, and play none.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND...")
def check(
    names: tuple[str, ...],
    skip: tuple[str, ...],
    patience: str,
    jobs: int | None,
    namespace: bool | None,
    never_approves: bool,
    junit: Path | None,
    html: Path | None,
    as_json: bool,
    lists: bool,
    command: tuple[str, ...],
) -> None:
    """Check what COMMAND, a handler of scheduled events, does in every kind of trouble.

    Options of the check come first, then `--`, then the handler's command with its own
    options. Each story starts the handler against a private server and watches what it asks
    and approves. The exit code is 0 if all went well, 1 if a story failed, and 2 if the handler
    could not be started.
    """
    from fairwarning.handler_check.namespace import NoNamespaces  # noqa: PLC0415  (the server is behind it)
    from fairwarning.handler_check.run import CannotCheck, Wish  # noqa: PLC0415
    from fairwarning.handler_check.run import check as run  # noqa: PLC0415

    chosen = _chosen(names, skip)
    if lists:
        _list(chosen, as_json=as_json)
        return
    if not command:
        raise Usage("say how your handler is started: fairwarning check -- COMMAND…")
    wish = Wish(
        command=command,
        stories=chosen,
        patience_s=(parse_duration_ms(patience) or 0) / 1000,
        jobs=jobs or max(_JOBS_MIN, os.cpu_count() or 1),
        approves=not never_approves,
        namespace=namespace,
    )
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        report = run(wish, _tell)
    except (CannotCheck, NoNamespaces) as problem:
        raise Usage(str(problem)) from None
    _write(report, junit, html)
    _show(report, as_json=as_json)
    sys.exit(0 if report.is_good else 1)


def _chosen(names: tuple[str, ...], skip: tuple[str, ...]) -> tuple[str, ...]:
    from fairwarning.handler_check.cases import STORIES  # noqa: PLC0415

    unknown = [each for each in (*names, *skip) if each not in STORIES]
    if unknown:
        raise Usage(f"there is no story {', '.join(unknown)}; there are {', '.join(STORIES)}")
    return tuple(each for each in STORIES if each in (names or STORIES) and each not in skip)


def _list(chosen: tuple[str, ...], *, as_json: bool) -> None:
    from fairwarning.handler_check.cases import STORIES  # noqa: PLC0415

    if as_json:
        told = [{"story": n, "title": STORIES[n].title, "why": STORIES[n].why} for n in chosen]
        echo_json({"stories": told})
        return
    width = max(len(each) for each in chosen)
    for name in chosen:
        click.echo(f"{name:<{width}}  {STORIES[name].title}")


def _tell(result: "Result") -> None:
    """On a terminal each story is shown as it ends; elsewhere the table at the end is enough."""
    from fairwarning.handler_check.reports.text import line  # noqa: PLC0415

    if sys.stderr.isatty():
        click.echo(line(result), err=True)


def _write(report: "Report", junit: Path | None, html: Path | None) -> None:
    from fairwarning.handler_check.reports import html as page  # noqa: PLC0415
    from fairwarning.handler_check.reports import junit as xml  # noqa: PLC0415

    try:
        if junit is not None:
            junit.write_bytes(xml.junit(report))
        if html is not None:
            html.write_text(page.html(report), encoding="utf-8")
    except OSError as problem:
        raise Usage(f"cannot write {problem.filename}: {problem.strerror}") from None


def _show(report: "Report", *, as_json: bool) -> None:
    from fairwarning.handler_check.reports.text import whole  # noqa: PLC0415

    if not as_json:
        is_told = sys.stderr.isatty() and sys.stdout.isatty()
        click.echo(whole(report, with_table=not is_told))
        return
    import msgspec  # noqa: PLC0415

    told = msgspec.to_builtins(report)
    for shown, result in zip(told["results"], report.results, strict=True):
        shown["verdict"] = result.verdict
    echo_json(told)


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt
