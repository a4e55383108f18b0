"""Merges the body of a PUT or PATCH into the stored body of a resource. Pure.

Objects are merged member by member, and lists are replaced. A null removes a notice profile, and is
ignored elsewhere. Secrets are removed. The body has the form of its type already (`body_types`).
"""

from typing import Any

from fairwarning.azure_api.request import Json

_SECRETS = frozenset({"adminpassword", "customdata", "userdata", "protectedsettings"})
"""Members that are never stored, because Azure never shows them. The names are in lower case."""
_NULL_MEANS_OFF = frozenset(
    {"scheduledEventsProfile", "terminateNotificationProfile", "osImageNotificationProfile"}
)
_REPLACED = frozenset({"tags"})
_AS_WRITTEN = frozenset({"tags", "settings", "metadata", "extendedProperties"})
"""Members whose content is not changed, because the owner chooses the names in it."""


def merge(before: Json, requested: Json) -> Json:
    """Returns the new body of the resource."""
    return _over(before, _without_secrets(requested))


def _over(before: Json, requested: Json) -> Json:
    found = dict(before)
    for name, value in requested.items():
        if value is None:
            if name in _NULL_MEANS_OFF:
                found.pop(name, None)
        elif isinstance(value, dict) and name not in _REPLACED:
            known = found.get(name)
            found[name] = _over(known if isinstance(known, dict) else {}, value)
        else:
            found[name] = _without_nulls(value)
    return found


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value if each is not None]
    return value


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: each if name in _AS_WRITTEN else _without_secrets(each)
            for name, each in value.items()
            if name.lower() not in _SECRETS
        }
    if isinstance(value, list):
        return [_without_secrets(each) for each in value]
    return value
