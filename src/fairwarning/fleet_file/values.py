"""This module reads the values that several kinds of resources have, and finds the place of each
mistake.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fairwarning.common.durations import DURATION_EXAMPLES, parse_duration_ms
from fairwarning.core.driver_settings import DriverCatalogue, driver_problem
from fairwarning.core.limits import INSTANCE_ADDRESSES_MAX, refuse_text
from fairwarning.core.model import ANNOUNCED_TYPES, EventType, Policy
from fairwarning.core.notice import refuse_lowered_notice
from fairwarning.core.resources import (
    DEFAULT_LOCATION,
    DEFAULT_RESOURCE_GROUP,
    DEFAULT_SUBSCRIPTION,
    Place,
)
from fairwarning.core.roster import refuse_address, refuse_place
from fairwarning.fleet_file.problems import Misplaced, Path, at, suggestion
from fairwarning.fleet_file.schema import Defaults, Table


def place_of(
    top: Defaults, own: Defaults, path: Path, drivers: DriverCatalogue, *, is_partial: bool
) -> Place:
    test, _ = _said(top, own, path, "test")
    driver, where = _said(top, own, path, "driver")
    kind, settings = driver_of(driver, where, drivers)
    return Place(
        subscription=_part(top, own, path, "subscription", DEFAULT_SUBSCRIPTION),
        resource_group=_part(top, own, path, "resource_group", DEFAULT_RESOURCE_GROUP),
        location=_part(top, own, path, "location", DEFAULT_LOCATION),
        test=bool(test),
        driver=kind,
        driver_settings=settings,
        origin="api" if is_partial else "file",
        left_out=frozenset(
            key for key in Defaults.__struct_fields__ if _said(top, own, path, key)[0] is None
        ),
    )


def _said(top: Defaults, own: Defaults, path: Path, key: str) -> tuple[Any, Path]:
    """Return the value that the resource gives, or else the one at the top of the file, and its
    path.
    """
    value = getattr(own, key)
    return (getattr(top, key), (key,)) if value is None else (value, (*path, key))


def _part(top: Defaults, own: Defaults, path: Path, key: str, default: str) -> str:
    text, where = _said(top, own, path, key)
    if text is None:
        return default
    with at(*where):
        refuse_place(key.replace("_", " "), text)
    return str(text)


def driver_of(
    driver: str | Table | None, path: Path, drivers: DriverCatalogue
) -> tuple[str, dict[str, str]]:
    """Return the name and the settings of a driver. It is written as a name, or as a table with a
    `type`. Raises Misplaced if it has a mistake.
    """
    table: Table = {"type": driver or "simulated"} if not isinstance(driver, dict) else driver
    settings = {key: _setting(value, (*path, key)) for key, value in table.items()}
    kind = settings.pop("type", None)
    if kind is None:
        raise Misplaced(path, 'a driver table needs a `type`, as in { type = "simulated" }')
    problem = driver_problem(drivers, kind, settings)
    if problem is not None:
        raise Misplaced(path, problem)
    return kind, settings


def _setting(value: object, path: Path) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str() | int():
            with at(*path):
                refuse_text("driver's setting", str(value))
            return str(value)
        case _:
            message = f"`{path[-1]}` must be a string, a whole number, or true or false"
            raise Misplaced(path, message)


def policy_of(top: Defaults, own: Defaults, path: Path, *, test: bool) -> Policy:
    approve, _ = _said(top, own, path, "approve")
    notice, where = _said(top, own, path, "notice")
    notice_ms = {_type(key, where): _notice_ms(value, (*where, key), test=test)
                 for key, value in (notice or {}).items()}  # fmt: skip
    if approve is None:
        return Policy(notice_ms=notice_ms)
    return Policy(
        approve_user_reboot=approve.user_reboot,
        approve_user_redeploy=approve.user_redeploy,
        approve_all_instances_down=approve.all_instances_down,
        notice_ms=notice_ms,
    )


def _type(key: str, path: Path) -> EventType:
    if key not in ANNOUNCED_TYPES:
        message = f"`{key}` is no type of event; {suggestion(key, ANNOUNCED_TYPES)}"
        raise Misplaced((*path, key), message)
    return EventType(key)


def _notice_ms(value: object, path: Path, *, test: bool) -> int:
    notice_ms = duration_ms(value, path)
    with at(*path):
        event_type = EventType(str(path[-1]))
        refuse_lowered_notice(Policy(notice_ms={event_type: notice_ms}), test=test)
    return notice_ms


def duration_ms(value: object, path: Path) -> int:
    found = parse_duration_ms(value) if isinstance(value, str) else None
    if found is None:
        raise Misplaced(
            path, f"`{path[-1]}` must be a duration in quotes, like {DURATION_EXAMPLES}"
        )
    return found


def tags_of(tags: Mapping[str, Any], path: Path) -> dict[str, str]:
    for key, value in tags.items():
        if not isinstance(value, str):
            raise Misplaced((*path, "tags", key), f"tag `{key}` must be a string; put it in quotes")
        with at(*path, "tags", key):
            refuse_text("tag", key + value)
    return dict(tags)


def handle_of(handle: str, path: Path) -> str:
    with at(*path, "handle"):
        refuse_text("handle", handle)
    return handle


def own_addresses(addresses: Sequence[str], path: Path) -> tuple[str, ...]:
    """Return the addresses of one instance. Raises Misplaced if there are too many or one is
    invalid.
    """
    if len(addresses) > INSTANCE_ADDRESSES_MAX:
        raise Misplaced(
            (*path, "addresses", INSTANCE_ADDRESSES_MAX),
            f"these are {len(addresses)} addresses for one instance; use at most "
            f"{INSTANCE_ADDRESSES_MAX}",
        )
    return _addresses(addresses, path)


def shared_addresses(
    addresses: Sequence[str], path: Path, instances: int | None
) -> tuple[str, ...]:
    """Return the addresses of a set, one for each instance in order. Raises Misplaced if there are
    too many or one is invalid.

    `instances` is the number of instances. None means that it is not known yet.
    """
    if instances is not None and len(addresses) > instances:
        raise Misplaced(
            (*path, "addresses", instances),
            f"these are {len(addresses)} addresses for {instances} instances, one each; take some "
            "out, or have more instances",
        )
    return _addresses(addresses, path)


def _addresses(addresses: Sequence[str], path: Path) -> tuple[str, ...]:
    for number, address in enumerate(addresses):
        with at(*path, "addresses", number):
            refuse_address(address)
    return tuple(addresses)
