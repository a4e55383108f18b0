"""Takes a server out of an nginx upstream by a change of its file, and puts it back.

A reload of nginx is graceful, so nginx finishes the requests of the server. If a reload fails, the
file is restored, so that no later reload uses the change by accident.
"""

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fairwarning.agent.actions.base import ActionFailed, Context, settings_of
from fairwarning.agent.actions.processes import must_run
from fairwarning.agent.config.model import Action, Nginx

WERE_DOWN = "were_down"


class NginxHandler:
    async def do(self, action: Action, context: Context) -> None:
        settings = _filled(action, context)
        before = _read(settings.file)
        try:
            found = servers(before, settings.upstream, settings.server)
        except NotUnderstood as problem:
            raise ActionFailed(f"{settings.file}: {problem}") from None
        if WERE_DOWN not in (context.kept or {}):
            context.keep(WERE_DOWN, " ".join(str(each.is_down) for each in found))
        await _change(settings, before, taken_out(before, found), context)

    async def undo(self, action: Action, context: Context) -> None:
        were_down = (context.kept or {}).get(WERE_DOWN)
        if were_down is None:
            return
        settings = _filled(action, context)
        before = _read(settings.file)
        try:
            found = servers(before, settings.upstream, settings.server)
        except NotUnderstood:
            # Somebody has removed the server from the file, so there is nothing to restore.
            found = []
        was = [word == str(True) for word in were_down.split()]
        await _change(settings, before, put_back(before, found, was), context)


async def _change(settings: Nginx, before: str, after: str, context: Context) -> None:
    """Write the file and reload nginx. Raises ActionFailed.

    It reloads even if the text is the same, because an earlier try may have stopped before that.
    """
    if after != before:
        _write(settings.file, after)
    if not settings.reload:
        return
    try:
        await must_run(settings.reload, environment=context.environment)
    except ActionFailed:
        if after != before:
            _write(settings.file, before)
        raise


def _filled(action: Action, context: Context) -> Nginx:
    settings = settings_of(action, Nginx)
    return Nginx(
        file=os.path.realpath(context.render(settings.file)),
        upstream=context.render(settings.upstream),
        server=context.render(settings.server),
        reload=tuple(context.render(word) for word in settings.reload),
    )


def _read(file: str) -> str:
    try:
        return read_text(file)
    except OSError as problem:
        raise ActionFailed(f"{file} cannot be read: {problem.strerror}") from None


def _write(file: str, text: str) -> None:
    try:
        replace_text(file, text)
    except OSError as problem:
        raise ActionFailed(f"{file} cannot be written: {problem.strerror}") from None


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
    """The text is no nginx configuration, or does not contain the server."""


@dataclass(frozen=True, slots=True)
class Directive:
    """A directive such as `server 10.0.0.1:80 weight=5`, and its place in the text."""

    block: tuple[str, ...]
    """The words that open the block of the directive, such as ("upstream", "web")."""
    words: tuple[str, ...]
    start: int
    end: int

    @property
    def is_down(self) -> bool:
        return "down" in self.words[2:]


def servers(text: str, upstream: str, server: str) -> list[Directive]:
    """Return all entries of the server in the upstream, in order.

    Raises NotUnderstood if there are none or if the text is no nginx configuration.
    """
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
    """Return the text without `down` in the entries that were not down before.

    `were_down` says for each entry in `found` whether it was down before the action.
    """
    ours = [each for each, was in zip(found, were_down, strict=False) if each.is_down and not was]
    changes = [(each.start, each.end, _without_down(text[each.start : each.end])) for each in ours]
    return _changed(text, changes)


def _without_down(said: str) -> str:
    return said.removesuffix(_ADDED) if said.endswith(_ADDED) else _DOWN.sub("", said)


def _changed(text: str, changes: Sequence[tuple[int, int, str]]) -> str:
    # Start at the end, so that earlier positions stay right.
    for start, end, new in reversed(changes):
        text = text[:start] + new + text[end:]
    return text


def _directives(text: str) -> Iterator[Directive]:
    """Yield all directives. A directive that opens a block comes before the ones inside it."""
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


def read_text(path: str) -> str:
    """Return the text of a file. Bytes that are not UTF-8 stay the same when it is written back."""
    return Path(path).read_bytes().decode(errors="surrogateescape")


def replace_text(path: str, text: str) -> None:
    """Replace the content of a file at once, and keep its mode and owner. Raises OSError."""
    folder = os.path.dirname(path)
    status = os.stat(path)
    # The leading dot keeps the file out of `include folder/*`.
    number, temporary = tempfile.mkstemp(prefix=".fairwarning-", dir=folder)
    try:
        with os.fdopen(number, "wb") as file:
            os.fchmod(number, status.st_mode & 0o7777)
            with suppress(PermissionError):
                os.fchown(number, status.st_uid, status.st_gid)
            file.write(text.encode(errors="surrogateescape"))
            file.flush()
            os.fsync(number)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
