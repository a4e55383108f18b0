"""Reads the TOML file of `serve --config`, whose keys are the names of options."""

import difflib
from pathlib import Path
from typing import Any

import click

from fairwarning.common.text_files import read_text
from fairwarning.common.toml_text import NotToml, parse_toml


def read_config(context: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Use the file's values as defaults of options. Raises `click.BadParameter` for a bad file."""
    if path is None:
        return
    try:
        given = parse_toml(read_text(path))[1]
    except OSError as problem:
        raise click.BadParameter(f"{path} cannot be read: {problem.strerror}") from None
    except NotToml as problem:
        raise click.BadParameter(f"{path}:{problem.line}: {problem.message}") from None
    context.default_map = {**(context.default_map or {}), **_options(context, path, given)}


def _options(context: click.Context, path: Path, given: dict[str, Any]) -> dict[str, Any]:
    known = {
        option.removeprefix("--"): parameter
        for parameter in context.command.params
        if isinstance(parameter, click.Option)
        for option in parameter.opts
        if option.startswith("--") and option not in ("--config", "--help")
    }
    found = {}
    for key, value in given.items():
        name = key.replace("_", "-")
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "see `fairwarning serve --help`"
            raise click.BadParameter(f"{path}: {key!r} is no option; {hint}")
        parameter = known[name]
        found[parameter.name or ""] = _value(path, key, value, takes_several=parameter.multiple)
    return found


def _value(path: Path, key: str, value: Any, *, takes_several: bool) -> Any:
    if isinstance(value, bool):
        return value
    if takes_several:
        return [str(each) for each in value] if isinstance(value, list) else [str(value)]
    if isinstance(value, list | dict):
        raise click.BadParameter(f"{path}: {key!r} takes one value; write it without brackets")
    return str(value)
