"""`fairwarning driver` lists the drivers that are installed, and checks one."""

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from fairwarning.cli.click_types import duration
from fairwarning.cli.output import draw, echo_json, make_console
from fairwarning.cli.table_model import Cell, Column, Listing
from fairwarning.common.command_errors import Problem
from fairwarning.common.durations import parse_duration_ms
from fairwarning.common.escape import one_line
from fairwarning.common.text_files import read_text
from fairwarning.common.toml_text import NotToml, parse_toml

if TYPE_CHECKING:
    from fairwarning.driver_check.results import Report, Result

_TYPES = ("Freeze", "Reboot", "Redeploy")
"""The types that leave an instance as it was, so that it can be used for the next check."""


class Usage(Problem):
    exit_code = 2


@click.group(
    epilog="""\b
Examples:
  fairwarning driver list
  fairwarning driver check simulated
"""
)
def driver() -> None:
    """List the drivers that are installed, and check one before it acts on real instances."""


@driver.command("list", epilog="\b\nExample:\n  fairwarning driver list --json\n")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_drivers(as_json: bool) -> None:
    """List the drivers that are installed, with their settings, and say why one cannot be used."""
    from fairwarning.drivers.plugins import installed  # noqa: PLC0415  (it imports every driver)

    if as_json:
        echo_json(
            {
                "drivers": [
                    {
                        "name": name,
                        "package": each.package,
                        "settings": [
                            {"name": s.name, "kind": s.kind.value, "required": s.is_required}
                            for s in each.settings.settings
                        ],
                        "unusable": each.settings.unusable or None,
                    }
                    for name, each in installed().items()
                ]
            }
        )
        return
    rows = tuple(
        (
            Cell(name),
            Cell(each.package),
            Cell(", ".join(s.name for s in each.settings.settings) or "none"),
            Cell(each.settings.unusable or "yes"),
        )
        for name, each in installed().items()
    )
    columns = (
        Column("DRIVER", whole=True),
        Column("PACKAGE"),
        Column("SETTINGS", wraps=True),
        Column("USABLE", wraps=True),
    )
    draw(make_console(is_capped=True), Listing(columns=columns, rows=rows, empty="no drivers"))


@driver.command(
    epilog="""\b
Examples:
  fairwarning driver check simulated
  fairwarning driver check command --set run=./impact --instance vm-1 --count './count "$1"'
  fairwarning driver check webhook --settings hook.toml --instance vm-1 --only lower-attempt
""",
)
@click.argument("name")
@click.option(
    "--set",
    "given",
    multiple=True,
    metavar="KEY=VALUE",
    help="Setting of the driver, as in the fleet file (repeatable).",
)
@click.option(
    "--settings",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="TOML file with the settings of the driver.",
)
@click.option(
    "--instance",
    "handles",
    multiple=True,
    metavar="HANDLE",
    help="Handle of an instance that may be lost: the name that the driver knows (repeatable).",
)
@click.option(
    "--count",
    default="",
    metavar="COMMAND",
    help="Shell command that prints how many impacts the instance $1 has had. Without it, only "
    "the driver's answers are checked.",
)
@click.option(
    "--away", default="", metavar="COMMAND", help="Shell command that stops the hypervisor."
)
@click.option(
    "--back",
    default="",
    metavar="COMMAND",
    help="Shell command that starts the hypervisor again after --away.",
)
@click.option(
    "--type",
    "kind",
    type=click.Choice(_TYPES, case_sensitive=False),
    default="Freeze",
    show_default=True,
    help="Type of the impacts that the check orders.",
)
@click.option(
    "--duration",
    "lasts",
    type=duration,
    default="1s",
    show_default=True,
    metavar="D",
    help="How long each impact lasts.",
)
@click.option(
    "--patience",
    type=duration,
    default="60s",
    show_default=True,
    metavar="D",
    help="How long one call of the driver may take.",
)
@click.option(
    "--gaps",
    type=click.IntRange(1),
    default=16,
    show_default=True,
    metavar="N",
    help="At how many places of its work the driver's process is killed at most.",
)
@click.option("--only", multiple=True, metavar="CHECK", help="Run only this check (repeatable).")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def check(
    name: str,
    given: tuple[str, ...],
    file: Path | None,
    handles: tuple[str, ...],
    count: str,
    away: str,
    back: str,
    kind: str,
    lasts: str,
    patience: str,
    gaps: int,
    only: tuple[str, ...],
    as_json: bool,
) -> None:
    """Check whether the driver NAME keeps its rules, even when a process is killed.

    docs/drivers.md has the rules. The driver runs in processes of its own, which are killed at each
    place where it waits for something. It really acts on the instances, so name some that may be
    lost. The exit code is 0 if no check failed, 1 if one failed, and 2 if the check could not
    begin.
    """
    from fairwarning.core.model import EventType  # noqa: PLC0415
    from fairwarning.driver_check.checks import CHECKS  # noqa: PLC0415
    from fairwarning.driver_check.run import CannotCheck, CheckOptions  # noqa: PLC0415
    from fairwarning.driver_check.run import check as run  # noqa: PLC0415

    unknown = [each for each in only if each not in CHECKS]
    if unknown:
        raise Usage(f"there is no check {', '.join(unknown)}; there are {', '.join(CHECKS)}")
    options = CheckOptions(
        driver=name,
        settings=_settings(given, file),
        handles=handles,
        type=EventType(kind),
        duration_s=(parse_duration_ms(lasts) or 0) // 1000,
        count=count,
        away=away,
        back=back,
        checks=[each for each in CHECKS if not only or each in only],
        patience_s=(parse_duration_ms(patience) or 0) / 1000,
        gaps_max=gaps,
    )
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        report = run(options, lambda result: _show(result, is_error=as_json))
    except CannotCheck as problem:
        raise Usage(str(problem)) from None
    _show_report(report, as_json=as_json)
    sys.exit(0 if report.is_good else 1)


def _settings(given: tuple[str, ...], file: Path | None) -> dict[str, str]:
    settings: dict[str, str] = {}
    if file is not None:
        try:
            _, table = parse_toml(read_text(file))
        except OSError as error:
            raise Usage(f"cannot read {file}: {error.strerror}") from None
        except NotToml as error:
            raise Usage(error.message, place=f"{file}:{error.line}") from None
        for key, value in table.items():
            if not isinstance(value, str | int):
                raise Usage(f"{file}: {key} must be a text, a whole number, true or false")
            settings[key] = str(value).lower() if isinstance(value, bool) else str(value)
    for each in given:
        key, equals, value = each.partition("=")
        if not equals or not key:
            raise Usage(f"--set {each!r} has no value; write --set KEY=VALUE")
        settings[key] = value
    return settings


def _show(result: "Result", *, is_error: bool) -> None:
    """Print a result when its check ends. With --json, results are only progress, so they are shown
    only on a terminal.
    """
    if is_error and not sys.stderr.isatty():
        return
    why = f": {one_line(result.why)}" if result.why else ""
    text = f"{result.verdict.value:<8}  {result.check:<13}  {result.title}{why}"
    click.echo(text, err=is_error)


def _show_report(report: "Report", *, as_json: bool) -> None:
    import msgspec  # noqa: PLC0415

    if as_json:
        echo_json({**msgspec.to_builtins(report), "good": report.is_good})
        return
    failed = sum(each.verdict.value == "failed" for each in report.results)
    passed = sum(each.verdict.value == "passed" for each in report.results)
    click.echo(f"{report.driver} ({report.package}): {passed} passed, {failed} failed")


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt
