"""The text of an nginx configuration: which servers an upstream has, and which are down. Pure.

Only the word `down` is ever added or taken away; every other character stays as it is.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
      | (?P<mark>[{};])
      | (?P<quoted>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
      | (?P<word>(?:\\.|\$\{[^}]*\}|[^\s{};"'\\])(?:\\.|\$\{[^}]*\}|[^\s{};\\])*)
    """,
    re.VERBOSE | re.DOTALL,
)
_ADDED = " down"
_DOWN = re.compile(r"\s+down(?=\s|$)")


class NotUnderstood(ValueError):
    """The text is no configuration of nginx, or lacks what was asked for."""


@dataclass(frozen=True, slots=True)
class Directive:
    """`server 10.0.0.1:80 weight=5`, without what ends it, and where it stands."""

    block: tuple[str, ...]
    """What begins the block that it stands in, as ("upstream", "web")."""
    words: tuple[str, ...]
    start: int
    end: int

    @property
    def is_down(self) -> bool:
        return "down" in self.words[2:]


def servers(text: str, upstream: str, server: str) -> list[Directive]:
    """All entries of the server, in order. Raises NotUnderstood if there are none."""
    block = ("upstream", upstream)
    directives = list(_directives(text))
    if all(each.words != block for each in directives):
        raise NotUnderstood(f"it has no `upstream {upstream}`")
    wanted = ("server", server)
    found = [each for each in directives if each.block == block and each.words[:2] == wanted]
    if not found:
        raise NotUnderstood(f"its `upstream {upstream}` has no `server {server}`")
    return found


def taken_out(text: str, found: Sequence[Directive]) -> str:
    changes = [(each.end, each.end, _ADDED) for each in found if not each.is_down]
    return _changed(text, changes)


def put_back(text: str, found: Sequence[Directive], were_down: Sequence[bool]) -> str:
    """Only those that were not down before."""
    ours = [each for each, was in zip(found, were_down, strict=False) if each.is_down and not was]
    changes = [(each.start, each.end, _without_down(text[each.start : each.end])) for each in ours]
    return _changed(text, changes)


def _without_down(said: str) -> str:
    return said.removesuffix(_ADDED) if said.endswith(_ADDED) else _DOWN.sub("", said)


def _changed(text: str, changes: Sequence[tuple[int, int, str]]) -> str:
    # From the end, so that the places of the earlier ones stay right.
    for start, end, new in reversed(changes):
        text = text[:start] + new + text[end:]
    return text


def _directives(text: str) -> Iterator[Directive]:
    """Those that open a block come before those in it."""
    blocks: list[tuple[str, ...]] = [()]
    words: list[re.Match[str]] = []
    for token in _tokens(text):
        if token["mark"] is None:
            words.append(token)
            continue
        said = tuple(_plain(word) for word in words)
        if words:
            yield Directive(blocks[-1], said, words[0].start(), words[-1].end())
        words = []
        if token["mark"] == "{":
            blocks.append(said)
        elif token["mark"] == "}" and len(blocks) > 1:
            blocks.pop()


def _tokens(text: str) -> Iterator[re.Match[str]]:
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            line = text.count("\n", 0, position) + 1
            raise NotUnderstood(f"line {line} is not understood; use a file of the upstream only")
        position = token.end()
        if token["space"] is None:
            yield token


def _plain(word: re.Match[str]) -> str:
    return word[0][1:-1] if word["quoted"] else word[0]
