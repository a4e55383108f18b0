"""This module chooses faults by a seed, does one after the other, and records them."""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Generic

from fairwarning.live_check.disturbances import waited
from fairwarning.live_check.fault_figures import accepted_s
from fairwarning.live_check.records import Fault as FaultRecord
from fairwarning.live_check.records import now
from fairwarning.live_check.world import World
from tools.cluster.fault import Cluster, D, Fault

_CALM_S = (2.0, 5.0)
"""How long nothing is done between two faults, so that the figures are those of one fault."""
_ACCEPTED_S_MAX = 60.0  # It only ends a hang.
_LOOK_PAUSE_S = 0.05  # Short beside the pause between two faults.


class FaultSchedule(Generic[D]):
    """Disturbs the live check with faults. No fault comes again before all others have come."""

    def __init__(
        self,
        faults: Sequence[type[Fault[D]]],
        cluster: Cluster[D],
        seed: str,
        tell: Callable[[str], None],
    ) -> None:
        self._faults = faults
        self._cluster = cluster
        self._chance = random.Random(seed)  # noqa: S311
        self._left: list[type[Fault[D]]] = []
        self._tell = tell

    async def __call__(self, world: World, over: asyncio.Event) -> None:
        while await waited(self._chance.uniform(*_CALM_S), over):
            record = await self._do(self._next()(self._cluster, world, self._chance))
            world.recorder.add(record)
            await _wait_for_approval(world, record, over)

    def _next(self) -> type[Fault[D]]:
        if not self._left:
            self._left = self._chance.sample(self._faults, len(self._faults))
        return self._left.pop()

    async def _do(self, fault: Fault[D]) -> FaultRecord:
        began = now()
        detail = await fault.do()
        # Also if the round ends now: the time that it lasts is a part of the fault.
        await asyncio.sleep(self._chance.uniform(*fault.lasts_s))
        await fault.undo()
        ended = now()
        if fault.writable is None:
            await fault.wait_until_writable()
        assert fault.writable is not None
        lasted_s = ended.mono_s - began.mono_s
        self._tell(f"{fault.name}: {detail}, {lasted_s:.1f} s")
        return FaultRecord(
            name=fault.name,
            detail=detail,
            began=began,
            ended=ended,
            writable=fault.writable,
            clock_step_ms=fault.clock_step_ms,
        )


async def _wait_for_approval(world: World, fault: FaultRecord, over: asyncio.Event) -> None:
    """Waits until an approval was accepted after the fault, so that the next one finds calm."""
    ends_s = now().mono_s + _ACCEPTED_S_MAX
    while now().mono_s < ends_s and not over.is_set():
        if any(each > fault.ended.mono_s for each in accepted_s(world.recorder.records)[-1:]):
            return
        await asyncio.sleep(_LOOK_PAUSE_S)
