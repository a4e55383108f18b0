"""Kinds of arguments: a duration in any form that people write."""

import click

from fairwarning.cli.times import NotATime, duration_text


def duration(text: str) -> str:
    """ISO 8601, the form that the API takes."""
    try:
        return duration_text(text)
    except NotATime as error:
        raise click.BadParameter(str(error)) from None


EVENT_TYPES = ["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"]
EVENT_TYPE = click.Choice(EVENT_TYPES, case_sensitive=False)
