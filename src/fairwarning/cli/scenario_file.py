"""From what a person named to the scenario that is meant: ours, a file, or a recording."""

import difflib
from pathlib import Path

from fairwarning.cli.problems import Problem
from fairwarning.common.text_files import read_text
from fairwarning.scenarios import library
from fairwarning.scenarios.model import Scenario, ScenarioProblem
from fairwarning.scenarios.parse import read_scenario
from fairwarning.scenarios.playback import read_playback


def find_scenario(name: str) -> Scenario:
    """Raises Problem, with the line if it is a file's fault."""
    if name in library.names():
        return read_scenario(library.text(name))
    path = Path(name)
    try:
        text = read_text(path)
    except FileNotFoundError:
        raise Problem(_unknown(name)) from None
    except OSError as error:
        raise Problem(f"{name} cannot be read: {error.strerror}; name another file") from None
    is_recording = path.suffix == ".jsonl" or text.lstrip().startswith("{")
    try:
        return read_playback(text) if is_recording else read_scenario(text)
    except ScenarioProblem as problem:
        place = name if problem.line is None else f"{name}:{problem.line}"
        raise Problem(problem.message, place=place) from None


def library_text(name: str) -> str:
    if name not in library.names():
        raise Problem(_unknown(name))
    return library.text(name)


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, library.names(), n=1)
    hint = f"did you mean {near[0]!r}?" if near else "see them with `fairwarning scenario list`"
    return f"there is no story and no file called {name!r}; {hint}"
