"""Defines the template functions that depend on the deployment, such as `resourceGroup`."""

from msgspec import Struct

from fairwarning.azure_api.paths import resource_id
from fairwarning.azure_api.request import Json
from fairwarning.azure_api.templates.errors import TemplateError, shorten
from fairwarning.azure_api.templates.functions.signature import Function, takes, takes_many
from fairwarning.azure_api.templates.values import Kind, Value, find_key
from fairwarning.core.instants import Instant

API_VERSIONS = {
    "Microsoft.Compute": "2024-11-01",
    "Microsoft.Network": "2024-05-01",
    "Microsoft.Resources": "2024-11-01",
    "Microsoft.Maintenance": "2025-10-01-preview",
    "Microsoft.Authorization": "2020-05-01",
    "Microsoft.Insights": "2022-10-01",
}
"""The api-version that `providers` returns for all types of a namespace."""


class DeploymentContext(Struct, frozen=True, kw_only=True):
    """The subscription, resource group and deployment that a template is evaluated in."""

    subscription: Json
    """The JSON of the subscription."""
    group: Json
    """The JSON of the resource group."""
    deployment: Json
    now: Instant = Instant(0)
    """The time that `utcNow` returns."""
    seed: str = "00000000-0000-0000-0000-000000000000"
    """The GUID from which `newGuid` makes its values."""

    @property
    def subscription_id(self) -> str:
        return str(self.subscription.get("subscriptionId", ""))

    @property
    def group_name(self) -> str:
        return str(self.group.get("name", ""))

    def id_of(self, type: str, *names: str, group: str = "") -> str:
        return resource_id(self.subscription_id, group or self.group_name, type, *names)

    def functions(self) -> dict[str, Function]:
        return {
            "subscription": takes(lambda: self.subscription),
            "resourcegroup": takes(lambda: self.group),
            "deployment": takes(lambda: self.deployment),
            "resourceid": takes_many(self._resource_id, Kind.TEXT, least=2),
            "subscriptionresourceid": takes_many(self._subscription_id_of, Kind.TEXT, least=2),
            "providers": takes(_providers, Kind.TEXT, Kind.TEXT, least=1),
        }

    def _resource_id(self, *words: str) -> str:
        places, type, names = _divided(words, 2)
        group = places[-1] if places else self.group_name
        subscription = places[0] if len(places) == 2 else self.subscription_id
        return resource_id(subscription, group, type, *names)

    def _subscription_id_of(self, *words: str) -> str:
        places, type, names = _divided(words, 1)
        return resource_id(places[0] if places else self.subscription_id, "", type, *names)


def _divided(words: tuple[str, ...], most: int) -> tuple[list[str], str, list[str]]:
    """Splits arguments into the words before the type, the type, and the names after the type.

    Raises TemplateError if there is no valid type or the number of names does not match it.
    """
    at = next((at for at, word in enumerate(words[: most + 1]) if "/" in word), None)
    if at is None:
        raise TemplateError(
            "none of the arguments is a type like 'Microsoft.Compute/virtualMachines'"
        )
    places, type, names = list(words[:at]), words[at], list(words[at + 1 :])
    wanted = type.count("/")
    if not all(type.split("/")) or not all(names):
        raise TemplateError(f"the type '{shorten(type)}' or one of the names has an empty segment")
    if len(names) != wanted:
        raise TemplateError(
            f"the type '{shorten(type)}' requires '{wanted}' resource name argument(s) and got "
            f"'{len(names)}'"
        )
    return places, type, names


def _providers(namespace: str, type: str = "") -> Value:
    key = find_key(dict(API_VERSIONS), namespace)
    if key is None:
        raise TemplateError(f"the namespace '{shorten(namespace)}' is not known")
    one: dict[str, Value] = {
        "resourceType": type,
        "locations": [],
        "apiVersions": [API_VERSIONS[key]],
    }
    return one if type else {"namespace": key, "resourceTypes": [one]}
