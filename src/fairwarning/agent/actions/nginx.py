"""Takes a server out of an upstream of nginx by its file, and puts it back.

nginx finishes what it has begun with the server: a reload is graceful. A reload that fails
leaves the file as it was, so that nobody loads it by accident later.
"""

import os

from fairwarning.agent.actions.base import ActionFailed, Context
from fairwarning.agent.actions.files import read_text, replace_text
from fairwarning.agent.actions.nginx_text import NotUnderstood, put_back, servers, taken_out
from fairwarning.agent.actions.processes import must_run
from fairwarning.agent.model import Action, Nginx

WERE_DOWN = "were_down"


class NginxDoer:
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
            # Somebody wrote the file anew without it: there is nothing left to put back.
            found = []
        was = [word == str(True) for word in were_down.split()]
        await _change(settings, before, put_back(before, found, was), context)


async def _change(settings: Nginx, before: str, after: str, context: Context) -> None:
    """Reloads also where nothing changes: an earlier try may have come as far as the file."""
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
    settings = action.settings
    assert isinstance(settings, Nginx)
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
