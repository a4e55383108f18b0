"""A fleet file on this machine, read or refused with its line."""

from pathlib import Path

import click

from fairwarning.fleetfile import Fleet, FleetProblem, read_toml


def read_fleet(path: Path) -> Fleet:
    try:
        return read_toml(path.read_text())
    except (OSError, UnicodeDecodeError) as problem:
        raise click.ClickException(f"{path} cannot be read: {problem}") from None
    except FleetProblem as problem:
        place = path if problem.line is None else f"{path}:{problem.line}"
        raise click.ClickException(f"{place}: {problem.message}") from None
