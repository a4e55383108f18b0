"""Checks the promises, and uses only what an outside observer can know.

`Checker.check` runs after every step. It reads the new entries of the journal and compares them
with the documents, the physical world, the answers to callers, and what the nodes show.
`check_at_end` runs after all faults are over and nothing is under way any more.
"""

from fairwarning.core.model import ScopeKind
from fairwarning.simulation.checkers.answers import AnswerChecker
from fairwarning.simulation.checkers.drivers import DriverChecker
from fairwarning.simulation.checkers.feeds import FeedChecker
from fairwarning.simulation.checkers.journal import JournalChecker
from fairwarning.simulation.checkers.notifications import NotificationChecker
from fairwarning.simulation.checkers.rollouts import RolloutChecker
from fairwarning.simulation.checkers.scopes import ScopeChecker
from fairwarning.simulation.checkers.views import ViewChecker
from fairwarning.simulation.observed_state import ObservedScope, ObservedWorld
from fairwarning.simulation.records import demand
from fairwarning.simulation.world import World

_PAGE = 10_000  # More entries than a world can have.


class Checker:
    def __init__(self, world: World) -> None:
        self._world = world
        self._seen = ObservedWorld()
        self._journal = JournalChecker(world)
        self._answers = AnswerChecker(world)
        self._scopes = ScopeChecker(world)
        self._drivers = DriverChecker(world)
        self._views = ViewChecker(world)
        self._feeds = FeedChecker(world)
        self._notifications = NotificationChecker(world)
        self._rollouts = RolloutChecker(world)
        world.save = self._save
        world.restore = self._restore

    async def begin(self) -> None:
        for scope_id in self._world.scope_ids:
            roster = (await self._world.store.read(scope_id)).roster
            self._seen.scopes[scope_id] = ObservedScope(
                scope_id,
                policy=roster.policy,
                test=roster.test,
                is_scale_set=roster.kind is ScopeKind.SCALE_SET,
                model=roster.model,
            )

    async def check(self) -> None:
        seen = self._seen
        new = await self._world.store.journal(after=seen.position, limit=_PAGE)
        self._journal.check(seen, new)
        self._answers.check(seen)
        await self._scopes.check(seen, has_news=bool(new))
        self._drivers.check(seen)
        await self._drivers.check_work()
        self._views.check(seen)
        self._feeds.check(seen)
        self._notifications.check(seen)
        await self._rollouts.check(seen)

    async def check_at_end(self) -> None:
        left = await self._world.unfinished()
        demand("9 every event ends", not left, lambda: f"still pending: {left}")
        self._journal.check_at_end(self._seen)
        await self._views.check_at_end()
        self._feeds.check_at_end(self._seen)
        await self._notifications.check_at_end(self._seen)
        await self._rollouts.check_at_end()

    def _save(self) -> ObservedWorld:
        return self._seen.copy()

    def _restore(self, saved: ObservedWorld) -> None:
        """Goes back to an earlier state, because the store has been set back to it."""
        kept = len(saved.entries)
        self._feeds.step_back(kept, self._seen.entries[kept:])
        self._seen = saved.copy()
        self._rollouts.forget()
