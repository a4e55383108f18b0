"""Positions of the journal as clients send them back."""

import re

from fairwarning.control.problems import Problem
from fairwarning.engine.ports import Position

_POSITION = re.compile(r"[0-9]{1,18}(-[0-9]{1,18})?")


def read_position(text: str) -> Position:
    if not _POSITION.fullmatch(text):
        raise Problem(
            422, "cursor-invalid", "this is no position of the history; take one from an answer"
        )
    return Position(text)
