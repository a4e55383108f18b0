"""A fleet file on this machine, read or refused with its line."""

from pathlib import Path

from fairwarning.cli.problems import Problem
from fairwarning.common.text_files import read_text
from fairwarning.fleet_file import Fleet, FleetProblem, read_toml


def read_fleet(path: Path) -> Fleet:
    try:
        return read_toml(read_text(path))
    except OSError as problem:
        raise Problem(f"{path} cannot be read: {problem.strerror}; name another file") from None
    except FleetProblem as problem:
        place = path if problem.line is None else f"{path}:{problem.line}"
        raise Problem(problem.message, place=str(place)) from None
