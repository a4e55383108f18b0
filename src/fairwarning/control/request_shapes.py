"""Requests of instances, as the API gives them."""

from msgspec import field

from fairwarning.control.shapes import DurationText, In, Out
from fairwarning.core.faults import FaultKind


class WatchBody(In):
    for_: DurationText = field(default="10m", name="for")


class RequestShown(Out):
    at: str
    scope: str
    instance: str
    kind: str
    """`events`, `approve`, `instance` or `versions`."""
    version: str
    agent: str
    events: list[str]
    """The ids that it approves."""
    fault: FaultKind | None
    """What went wrong with it on purpose."""


class RequestList(Out):
    watching_seconds: int
    """How much longer requests are noted; 0: they are not."""
    requests: list[RequestShown]
