"""Positions of the journal as clients send them back."""

import re

from fairwarning.control.problems import Problem
from fairwarning.engine.protocols import Position, Store

_POSITION = re.compile(r"[0-9]{1,18}(-[0-9]{1,18})?")


async def checked_position(store: Store, text: str) -> Position:
    """Each store has its own form, so the store is asked. Raises Problem."""
    try:
        if not _POSITION.fullmatch(text):
            raise ValueError(text)
        await store.journal(after=Position(text), limit=1)
    except (ValueError, OverflowError):
        raise Problem(
            422, "cursor-invalid", "this is no position of the history; take one from an answer"
        ) from None
    return Position(text)
