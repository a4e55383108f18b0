"""Who this VM is. A name in the config spares the question, unless more than the name is needed."""

import asyncio
import random
import re

from fairwarning.agent import logs
from fairwarning.agent.model import Config
from fairwarning.client import AsyncScheduledEvents, EventsUnavailable, Instance
from fairwarning.client.flow import Flow, Outcome

_MORE = re.compile(r"\{me\.[a-z]")


def needs_more(config: Config) -> bool:
    """Than the name: what only the service knows, for the tags of a rule or for a template."""
    has_tags = any(rule.tags for rule in config.rules)
    return has_tags or _MORE.search(repr(config.rules)) is not None


async def ask(service: AsyncScheduledEvents, *, gives_up: bool = False) -> Instance:
    """Until the service answers. Raises EventsUnavailable if it gives up."""
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
    """As after so many polls that failed: a fleet that boots must not ask in step."""
    return Flow(failures=failures).pause_s(Outcome(trouble="no answer"), chance, held=False)
