"""Asks the service about this VM, if the config has no name or needs more than the name."""

import asyncio
import random
import re

from fairwarning.agent import logs
from fairwarning.agent.config.model import Config
from fairwarning.client import AsyncScheduledEvents, EventsUnavailable, Instance
from fairwarning.client.polling import Outcome, PollState

_MORE = re.compile(r"\{me\.[a-z]")


def needs_more(config: Config) -> bool:
    """Return whether a rule or a template needs more data about this VM than its name."""
    has_tags = any(rule.tags for rule in config.rules)
    return has_tags or _MORE.search(repr(config.rules)) is not None


async def ask(service: AsyncScheduledEvents, *, gives_up: bool = False) -> Instance:
    """Return what the service knows about this VM. It is asked until it answers.

    With `gives_up`, it is asked once, and EventsUnavailable is raised if it does not answer.
    """
    said = ""
    failures = 0
    while True:
        try:
            return await service.instance()
        except EventsUnavailable as problem:
            if gives_up:
                raise
            if str(problem) != said:
                said = str(problem)
                logs.warn(f"cannot ask who this VM is: {problem}; trying again")
        failures += 1
        await asyncio.sleep(pause_s(failures, random.random()))  # noqa: S311  (spreads the load)


def pause_s(failures: int, chance: float) -> float:
    """Return the pause after so many failures. `chance` is a random number from 0 to 1, so that VMs
    that boot together do not all ask at the same time.
    """
    return PollState(failures=failures).pause_s(Outcome(trouble="no answer"), chance, held=False)
