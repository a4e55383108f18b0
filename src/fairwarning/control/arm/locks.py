"""Locks on a resource of ARM: whoever has one changes nothing once it is lost."""

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fairwarning.control.arm.call import Arm, ArmCall
from fairwarning.control.arm.operations import Operations
from fairwarning.control.arm.shelf import Shelf
from fairwarning.control.holding import held


@asynccontextmanager
async def locked(arm: Arm, call: ArmCall, what: str) -> AsyncIterator[Arm]:
    """Work with the one that this yields. Raises Problem if somebody else has the lock."""
    async with held(arm.control, what, by=call.by) as control:
        shelf, operations = Shelf(control.store), Operations(control.store, control.clock)
        yield dataclasses.replace(arm, control=control, shelf=shelf, operations=operations)
