"""Kinds of arguments: a duration in any form that people write, and a number."""

import math
from typing import Any

import click

from fairwarning.cli.times import NotATime, duration_text


class Number(click.FloatRange):
    """A number within limits. click lets `nan` through: it is neither too small nor too large."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail(f"{value!r} is no number; write one like 0.5", param, ctx)
        return found


def duration(text: str) -> str:
    """ISO 8601, the form that the API takes."""
    try:
        return duration_text(text)
    except NotATime as error:
        raise click.BadParameter(str(error)) from None


EVENT_TYPES = ["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"]
EVENT_TYPE = click.Choice(EVENT_TYPES, case_sensitive=False)
