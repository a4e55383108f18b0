"""Names of rollouts and of their events.

The id of an event follows from its place in the rollout, so that announcing it again after a
crash, or from two nodes, is recognised as the same announcement.
"""

import re

from fairwarning.core.identifiers import guid_of
from fairwarning.core.instants import Instant, to_datetime
from fairwarning.core.model import EventId
from fairwarning.core.rollouts.model import RolloutId, RolloutStep

_NAMESPACE = bytes.fromhex("5b0d6f7c3d5e4b0a9c1e8a4b7f2d6e90")
_ROLLOUT_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}", re.ASCII)


def rollout_id(created: Instant, salt: EventId) -> RolloutId:
    """`20261116-093000-3f9a1c`: when it was created, in UTC, and the end of a random id."""
    return RolloutId(f"{to_datetime(created):%Y%m%d-%H%M%S}-{salt[-6:].lower()}")


def is_rollout_id(text: str) -> bool:
    return _ROLLOUT_ID.fullmatch(text) is not None


def event_id_of(rollout: RolloutId, step: RolloutStep) -> EventId:
    name = f"{rollout}\n{step.scope_id}\n{step.update_domain}\n{step.tries}"
    return EventId(guid_of(name, _NAMESPACE).upper())
