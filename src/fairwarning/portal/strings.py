"""Loads the texts of all pages from strings/. Pages use them by key."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from markupsafe import Markup, escape

_CODE = re.compile(r"`([^`]*)`")


class Texts:
    def __init__(self, tables: Mapping[str, object]) -> None:
        self._texts = dict(_flat("", tables))

    def __call__(self, key: str, /, **values: object) -> str:
        """Return the text of a key with the values filled in, as in `t("time.ago", span="5 s")`.

        For a `count` of 1, it is the text of `KEY-one` if there is one. A part between backticks
        becomes an element `code`.
        """
        chosen = self._texts[key]
        if values.get("count") == 1:
            chosen = self._texts.get(f"{key}-one", chosen)
        text = with_code(chosen)
        return text.format(**values) if values else text

    def known(self) -> list[str]:
        """Return all keys."""
        return [*self._texts]


def with_code(text: str) -> str:
    """Return the text with each part between backticks as an element `code`."""
    if "`" not in text:
        return text
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704  Escaped before.


@cache
def english() -> Texts:
    """Return the English texts from all files in strings/."""
    tables: dict[str, object] = {}
    folder = files("fairwarning.portal") / "strings" / "en"
    for each in sorted(folder.iterdir(), key=lambda found: found.name):
        if each.name.endswith(".toml"):
            tables |= tomllib.loads(each.read_text(encoding="utf-8"))
    return Texts(tables)


def _flat(prefix: str, tables: Mapping[str, object]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in tables.items():
        name = f"{prefix}.{key}" if prefix else key
        if isinstance(value, Mapping):
            found += _flat(name, value)
        else:
            found.append((name, str(value)))
    return found
