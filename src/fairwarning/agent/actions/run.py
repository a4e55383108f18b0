"""Runs the command of a `run` action.

The command gets the event on its standard input and in its environment. Its output goes to the
log.
"""

import logging

from fairwarning.agent.actions.base import ActionFailed, Context
from fairwarning.agent.actions.processes import complaint, run
from fairwarning.agent.config.model import Run

LOGGED_CHARS_MAX = 8_192  # Enough to see what the command did, and the log stays readable.

_log = logging.getLogger(__name__)


async def run_command(settings: Run, context: Context) -> None:
    """Run the command. Raises ActionFailed unless it exits with 0."""
    argv = command(settings, context)
    finished = await run(argv, environment=context.environment, stdin=context.payload.encode())
    if finished.said:
        _log.info("%s said: %s", argv[0], finished.said[-LOGGED_CHARS_MAX:])
    if finished.code != 0:
        program = "the command" if settings.is_shell else argv[0]
        raise ActionFailed(complaint(program, finished))


def command(settings: Run, context: Context) -> list[str]:
    """Return the argv with templates filled in.

    A text for the shell stays as it is, because the shell could run parts of an event as commands.
    """
    if settings.is_shell:
        return list(settings.command)
    return [context.render(word) for word in settings.command]
