"""This module lists the api-versions of /metadata/scheduledevents and what each can show.

The list is not the one of /metadata/instance. Each version has all fields of the version before it.
A version does not show events of a type that was added later.
"""

from dataclasses import dataclass

from fairwarning.core.model import EventType

_FIRST_TYPES = frozenset({EventType.FREEZE, EventType.REBOOT, EventType.REDEPLOY})
_WITH_PREEMPT = _FIRST_TYPES | {EventType.PREEMPT}
_WITH_TERMINATE = _WITH_PREEMPT | {EventType.TERMINATE}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersion:
    name: str
    types: frozenset[EventType] = _WITH_TERMINATE
    has_description: bool = False
    has_source: bool = False
    has_duration: bool = False
    prefixes_underscore: bool = False
    """Whether names of VMs are written as `_name`. Names in cloud services never are."""
    is_header_optional_on_post: bool = False


VERSIONS: tuple[ApiVersion, ...] = (
    ApiVersion(
        name="2017-03-01",
        types=_FIRST_TYPES,
        prefixes_underscore=True,
        is_header_optional_on_post=True,
    ),
    ApiVersion(name="2017-08-01", types=_FIRST_TYPES),
    ApiVersion(name="2017-11-01", types=_WITH_PREEMPT),
    ApiVersion(name="2019-01-01"),
    ApiVersion(name="2019-04-01", has_description=True),
    ApiVersion(name="2019-08-01", has_description=True, has_source=True),
    ApiVersion(name="2020-07-01", has_description=True, has_source=True, has_duration=True),
)
NEWEST = VERSIONS[-1]
"""The version that Azure documents as the current one, and that most clients ask for."""
PREVIEW = ApiVersion(name="2024-07-09", has_description=True, has_source=True, has_duration=True)
"""A version that Azure has and does not document. OpenShift's handler asks for it first. It is
known only where a setting says so. It has the fields of the version before, as nobody knows of
others.
"""
BY_NAME = {version.name: version for version in (*VERSIONS, PREVIEW)}
