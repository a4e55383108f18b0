"""This module makes text from other programs safe to print on a terminal, and formats lists.

Such text must not move the cursor or change colours.
"""

import re
import unicodedata
from collections.abc import Sequence

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def clean(text: str) -> str:
    """Return the text with control characters as U+FFFD, except line breaks and tabs."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_visible, text))


def one_line(text: str) -> str:
    return " ".join(clean(text).split())


def _visible(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs"):
        return character
    return "\N{REPLACEMENT CHARACTER}"


def log_line(text: str) -> str:
    """Escape control characters, so that nobody can forge a line of the log."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def several(names: Sequence[str], shown_max: int = 4) -> str:
    """Return the first names and the number of the others, like `web-0, web-1 and 8 more`."""
    if len(names) <= shown_max:
        return ", ".join(names)
    return f"{', '.join(names[:shown_max])} and {len(names) - shown_max} more"


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
