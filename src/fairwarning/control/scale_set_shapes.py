"""Scale sets and policies as the API takes and gives them."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from fairwarning.control import shapes
from fairwarning.control.shapes import Event, In, Name, Out
from fairwarning.core.resources import CAPACITY_MAX
from fairwarning.core.spans import DURATION_PATTERN

Address = Annotated[str, Meta(max_length=64)]
NoticeText = Annotated[
    Any,
    Meta(
        description="`15m` or ISO 8601",
        extra_json_schema={"type": ["string", "null"], "pattern": DURATION_PATTERN},
    ),
]
"""Anything can be read here, because what is wrong with a notice has a code of its own."""


class ScaleBody(In):
    capacity: Annotated[int, Meta(ge=0, le=CAPACITY_MAX)]
    addresses: Annotated[list[Address], Meta(max_length=CAPACITY_MAX)] = []
    """One for each newcomer, as far as there are any."""


class ScalePlan(Out):
    name: str
    members: int
    capacity: int
    adds: int
    removes: list[str]


class ReplaceBody(In):
    addresses: Annotated[list[Address], Meta(max_length=1)] = []


class Resized(Out):
    name: str
    capacity: int
    added: list[str]
    events: list[Event]


class ModelBody(In):
    """What is left out stays; null switches it off."""

    terminate_notice: NoticeText = UNSET
    reimage_notice: NoticeText = UNSET


class UpgradeBody(In):
    instances: Annotated[list[Name], Meta(min_length=1, max_length=CAPACITY_MAX)] | None = None


class Upgraded(Out):
    upgraded: list[str]


class PolicyBody(In):
    """What is left out stays."""

    approve_user_reboot: bool | UnsetType = UNSET
    approve_user_redeploy: bool | UnsetType = UNSET
    approve_all_instances_down: bool | UnsetType = UNSET


class Scopes(Out):
    scopes: list[shapes.Scope]
