"""This module reads the values that several kinds of resources have, and finds the place of each
mistake.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fairwarning.common.durations import DURATION_EXAMPLES, parse_duration_ms
from fairwarning.common.toml_table import suggestion
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
from fairwarning.fleet_file.hooks import hooks_of
from fairwarning.fleet_file.problems import Where
from fairwarning.fleet_file.schema import Defaults, Table


def place_of(
    top: Defaults, own: Defaults, where: Where, drivers: DriverCatalogue, *, is_partial: bool
) -> Place:
    test, test_at = _said(top, own, where, "test")
    driver, driver_at = _said(top, own, where, "driver")
    kind, settings = driver_of(driver, driver_at, drivers)
    hooks, hooks_at = _said(top, own, where, "hooks")
    return Place(
        subscription=_part(top, own, where, "subscription", DEFAULT_SUBSCRIPTION),
        resource_group=_part(top, own, where, "resource_group", DEFAULT_RESOURCE_GROUP),
        location=_part(top, own, where, "location", DEFAULT_LOCATION),
        # If it is unknown whether this is a test fleet, no short notice is called a mistake.
        test=bool(test) or where["test"].is_wrong or test_at.is_wrong,
        driver=kind,
        driver_settings=settings,
        hooks=hooks_of(hooks, hooks_at),
        origin="api" if is_partial else "file",
        left_out=frozenset(
            key for key in Defaults.__struct_fields__ if _said(top, own, where, key)[0] is None
        ),
    )


def _said(top: Defaults, own: Defaults, where: Where, key: str) -> tuple[Any, Where]:
    """Return the value that the resource gives, or else the one at the top of the file. Also
    return the place of the value.
    """
    value = getattr(own, key)
    if value is None:
        return getattr(top, key), Where((key,), where.mistakes)
    return value, where[key]


def _part(top: Defaults, own: Defaults, where: Where, key: str, default: str) -> str:
    text, text_at = _said(top, own, where, key)
    if text is None:
        return default
    with text_at:
        refuse_place(key.replace("_", " "), text)
    return str(text)


def driver_of(
    driver: str | Table | None, where: Where, drivers: DriverCatalogue
) -> tuple[str, dict[str, str]]:
    """Return the name and the settings of a driver. In the file it is a name, or a table with a
    `type`.
    """
    table: Table = {"type": driver or "simulated"} if not isinstance(driver, dict) else driver
    settings = {key: _setting(value, where[key]) for key, value in table.items()}
    kind = settings.pop("type", None)
    if kind is None:
        where.wrong('a driver table needs a `type`, as in { type = "simulated" }')
    elif not where.mistakes.has_below(where.path):
        problem = driver_problem(drivers, kind, settings)
        if problem is not None:
            where.wrong(problem)
    return kind or "", settings


def _setting(value: object, where: Where) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str() | int():
            with where:
                refuse_text("driver's setting", str(value))
            return str(value)
        case _:
            key = where.path[-1]
            where.wrong(f"`{key}` must be a string, a whole number, or true or false")
            return ""


def policy_of(top: Defaults, own: Defaults, where: Where, *, test: bool) -> Policy:
    approve, _ = _said(top, own, where, "approve")
    notice, notice_at = _said(top, own, where, "notice")
    notice_ms = {
        EventType(key): _notice_ms(key, value, notice_at[key], test=test)
        for key, value in (notice or {}).items()
        if _is_type(key, notice_at[key])
    }
    if approve is None:
        return Policy(notice_ms=notice_ms)
    return Policy(
        approve_user_reboot=approve.user_reboot,
        approve_user_redeploy=approve.user_redeploy,
        approve_all_instances_down=approve.all_instances_down,
        notice_ms=notice_ms,
    )


def _is_type(key: str, where: Where) -> bool:
    if key not in ANNOUNCED_TYPES:
        where.wrong(f"`{key}` is no type of event; {suggestion(key, ANNOUNCED_TYPES)}")
    return key in ANNOUNCED_TYPES


def _notice_ms(key: str, value: object, where: Where, *, test: bool) -> int:
    notice_ms = parse_duration_ms(value) if isinstance(value, str) else None
    if notice_ms is None:
        where.wrong(f"`{key}` must be a duration in quotes, like {DURATION_EXAMPLES}")
        return 0
    with where:
        refuse_lowered_notice(Policy(notice_ms={EventType(key): notice_ms}), test=test)
    return notice_ms


def tags_of(tags: Mapping[str, Any], where: Where) -> dict[str, str]:
    for key, value in tags.items():
        if not isinstance(value, str):
            where["tags"][key].wrong(f"tag `{key}` must be a string; put it in quotes")
            continue
        with where["tags"][key]:
            refuse_text("tag", key + value)
    return dict(tags)


def handle_of(handle: str, where: Where) -> str:
    with where["handle"]:
        refuse_text("handle", handle)
    return handle


def own_addresses(addresses: Sequence[str], where: Where) -> tuple[str, ...]:
    """Return the addresses of one instance. A mistake is noted if there are too many."""
    if len(addresses) > INSTANCE_ADDRESSES_MAX:
        where["addresses"][INSTANCE_ADDRESSES_MAX].wrong(
            f"these are {len(addresses)} addresses for one instance; use at most "
            f"{INSTANCE_ADDRESSES_MAX}"
        )
    return _addresses(addresses, where)


def shared_addresses(
    addresses: Sequence[str], where: Where, instances: int | None
) -> tuple[str, ...]:
    """Return the addresses of a set, one for each instance in order. A mistake is noted if there
    are too many.

    `instances` is the number of instances. None means that it is not known yet.
    """
    if instances is not None and len(addresses) > instances:
        where["addresses"][instances].wrong(
            f"these are {len(addresses)} addresses for {instances} instances, one each; take some "
            "out, or have more instances"
        )
    return _addresses(addresses, where)


def _addresses(addresses: Sequence[str], where: Where) -> tuple[str, ...]:
    for number, address in enumerate(addresses):
        with where.inside("addresses", number):
            refuse_address(address)
    return tuple(addresses)
