"""The config read anew while the agent runs."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from fairwarning.agent import identifying, logs
from fairwarning.agent.config import BadConfig
from fairwarning.agent.model import Config
from fairwarning.agent.runner import Runner
from fairwarning.client import AsyncScheduledEvents
from fairwarning.client.model import Instance

_FIXED = ("endpoint", "name", "state", "listen")
"""What a reload cannot change."""


class Reloader:
    def __init__(
        self, runner: Runner, service: AsyncScheduledEvents, reread: Callable[[], Config]
    ) -> None:
        """`reread` raises BadConfig or OSError."""
        self._runner = runner
        self._service = service
        self._reread = reread
        self._asking: asyncio.Task[None] | None = None

    def reload(self) -> None:
        """At once; or, if the config needs to know more of this VM than the name, as soon as the
        service has said it: a rule must not be passed over only because a tag is not known."""
        try:
            config = self._reread()
        except (BadConfig, OSError) as problem:
            logs.warn(f"the config was not reloaded, and the old one stays: {problem}")
            return
        self.stop()
        if identifying.needs_more(config):
            self._asking = asyncio.create_task(self._ask_first(config))
        else:
            self._take_over(config, self._runner.me)

    def stop(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    async def _ask_first(self, config: Config) -> None:
        me = await identifying.ask(self._service)
        self._take_over(config, replace(me, name=self._runner.me.name))

    def _take_over(self, config: Config, me: Instance) -> None:
        before = self._runner.config
        self._runner.reload(config, me)
        logs.say("the config was reloaded; it counts for events that are seen from now on")
        if fixed := [name for name in _FIXED if getattr(config, name) != getattr(before, name)]:
            logs.warn(f"a change of {', '.join(fixed)} needs a restart")
