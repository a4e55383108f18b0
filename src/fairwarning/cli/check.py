"""`fairwarning check` runs a handler of scheduled events through the cases of handler_check."""

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
  fairwarning check --case neighbour --case preempt -- ./handler
  fairwarning check --vm workers_1 --badge badge.svg -- ./handler
  fairwarning check --list
"""
_JOBS_MIN = 4
"""The smallest default of --jobs. Cases mostly wait for the handler's next poll, so more of them
than cores can run.
"""


class Usage(Problem):
    exit_code = 2


class _OptionsFirst(click.Command):
    """A command whose options come before the handler's command; later ones go to the handler."""

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
    cls=_OptionsFirst,
    epilog=_EXAMPLES,
    # What follows the handler's program are the handler's own arguments.
    context_settings={"allow_interspersed_args": False},
)
@click.option(
    "--case", "names", multiple=True, metavar="NAME", help="Run only this case (repeatable)."
)
@click.option("--skip", multiple=True, metavar="NAME", help="Leave out this case (repeatable).")
@click.option(
    "--patience",
    type=duration,
    default="10s",
    show_default=True,
    metavar="D",
    help="How long the handler may take for each action that is expected of it. Set it to more "
    "than two of its polling intervals.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    metavar="N",
    help=f"How many cases run at the same time (default: one for each core, at least {_JOBS_MIN}).",
)
@click.option(
    "--namespace/--no-namespace",
    default=None,
    help="Whether the handler runs in its own network namespace, where it reaches only the "
    "endpoint, at the real 169.254.169.254 (default: if the system allows it).",
)
@click.option(
    "--never-approves",
    is_flag=True,
    help="Expect no approvals, because the handler only drains and shows that in its log.",
)
@click.option(
    "--junit",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the report to this file as JUnit XML.",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the report to this file as HTML.",
)
@click.option(
    "--vm",
    default="",
    metavar="NAME",
    help="The name of the VM that the handler runs on, such as web-7, or workers_1 for an instance "
    "of a scale set (default: as each case needs it).",
)
@click.option(
    "--badge",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the grade to this file for a README: an image if it ends in .svg, else JSON for a "
    "service that makes badges.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole report as JSON.")
@click.option("--list", "lists", is_flag=True, help="List the cases without running any.")
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
    vm: str,
    badge: Path | None,
    as_json: bool,
    lists: bool,
    command: tuple[str, ...],
) -> None:
    """Run COMMAND, a handler of scheduled events, through test cases, and report its mistakes.

    Options of the check come first, then `--`, then the handler's command with its own options.
    Each case starts the handler against a private server and watches the handler's requests and
    approvals. The exit code is 0 if all cases passed, 1 if a case failed, and 2 if the handler
    could not be started.
    """
    from fairwarning.handler_check.namespace import NoNamespaces  # noqa: PLC0415  (the server is behind it)
    from fairwarning.handler_check.run import CannotCheck, CheckOptions  # noqa: PLC0415
    from fairwarning.handler_check.run import check as run  # noqa: PLC0415

    chosen = _chosen(names, skip)
    if lists:
        _list(chosen, as_json=as_json)
        return
    if not command:
        raise Usage("say how your handler is started: fairwarning check -- COMMAND…")
    options = CheckOptions(
        command=command,
        cases=chosen,
        patience_s=(parse_duration_ms(patience) or 0) / 1000,
        jobs=jobs or max(_JOBS_MIN, os.cpu_count() or 1),
        approves=not never_approves,
        namespace=namespace,
        vm=vm,
    )
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        report = run(options, _show_result)
    except (CannotCheck, NoNamespaces) as problem:
        raise Usage(str(problem)) from None
    _write(report, junit, html, badge)
    _show(report, as_json=as_json)
    sys.exit(0 if report.is_good else 1)


def _chosen(names: tuple[str, ...], skip: tuple[str, ...]) -> tuple[str, ...]:
    from fairwarning.handler_check.all_cases import CASES  # noqa: PLC0415

    unknown = [each for each in (*names, *skip) if each not in CASES]
    if unknown:
        raise Usage(f"there is no case {', '.join(unknown)}; there are {', '.join(CASES)}")
    return tuple(each for each in CASES if each in (names or CASES) and each not in skip)


def _list(chosen: tuple[str, ...], *, as_json: bool) -> None:
    from fairwarning.handler_check.all_cases import CASES  # noqa: PLC0415
    from fairwarning.handler_check.reports import listed  # noqa: PLC0415

    if as_json:
        rows = [{"case": n, "title": CASES[n].title, "why": CASES[n].why} for n in chosen]
        echo_json({"cases": rows})
        return
    width = max((len(each) for each in chosen), default=0)
    for name in chosen:
        click.echo(listed(f"{name:<{width}}  ", CASES[name].title))


def _show_result(result: "Result") -> None:
    """Print the result when a case ends, on a terminal only; the final table shows all anyway."""
    from fairwarning.handler_check.reports import line  # noqa: PLC0415

    if sys.stderr.isatty():
        click.echo(line(result), err=True)


def _write(report: "Report", junit: Path | None, html: Path | None, badge: Path | None) -> None:
    import msgspec  # noqa: PLC0415

    from fairwarning.handler_check import grade, reports  # noqa: PLC0415

    try:
        if junit is not None:
            junit.write_bytes(reports.junit(report))
        if html is not None:
            html.write_text(reports.html(report), encoding="utf-8")
        if badge is not None:
            found = grade.grade(report)
            is_image = badge.suffix.lower() == ".svg"
            text = grade.badge_svg(found).encode() if is_image else b""
            badge.write_bytes(text or msgspec.json.encode(grade.badge_json(found)))
    except OSError as problem:
        raise Usage(f"cannot write {problem.filename}: {problem.strerror}") from None


def _show(report: "Report", *, as_json: bool) -> None:
    from fairwarning.handler_check.reports import full_text  # noqa: PLC0415

    if not as_json:
        is_shown = sys.stderr.isatty() and sys.stdout.isatty()
        click.echo(full_text(report, with_table=not is_shown))
        return
    import msgspec  # noqa: PLC0415

    from fairwarning.handler_check.grade import grade  # noqa: PLC0415

    body = msgspec.to_builtins(report)
    body["grade"] = msgspec.to_builtins(grade(report))
    for each, result in zip(body["results"], report.results, strict=True):
        each["verdict"] = result.verdict
    echo_json(body)


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt
