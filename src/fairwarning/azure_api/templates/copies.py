"""From the resources of a template to one for each that is to be made: copies and children."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fairwarning.azure_api.paths import BadPath, resource_path
from fairwarning.azure_api.request import Json
from fairwarning.azure_api.templates.errors import Fault, invalid, invalid_at, shown
from fairwarning.azure_api.templates.limits import Budget, copies_of
from fairwarning.azure_api.templates.resolve import Loops, Walk

DEPLOYMENT = "microsoft.resources/deployments"
_OWN_WORDS = frozenset(
    ("type", "name", "apiversion", "dependson", "copy", "condition", "comments", "resources",
     "scope", "metadata", "resourcegroup", "subscriptionid")
)  # fmt: skip
"""What a template says to ARM; all else of a resource goes to whoever makes it."""

Walker = Callable[[str, Loops], Walk]
"""For the resource of a name, where no `reference` is possible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One resource that is to be made."""

    id: str
    type: str
    name: str
    """With the names of its parents: `SLB/NatRule`."""
    api_version: str
    is_wanted: bool
    """Its condition is true."""
    copy: str
    """The name of the loop that it comes from, in lower case; empty: none."""
    depends_on: tuple[str, ...]
    """As the template has them, evaluated."""
    raw: Json
    loops: Loops
    group: str = ""
    """Where a nested deployment goes, if it says so."""

    @property
    def is_deployment(self) -> bool:
        return self.type.lower() == DEPLOYMENT


class Expansion:
    """Raises ArmError."""

    def __init__(self, walker: Walker, id_of: Callable[..., str], budget: Budget) -> None:
        self._walker = walker
        self._id_of = id_of
        self._budget = budget
        self.copies: set[str] = set()
        """Names of all loops, in lower case; those that ran no time too."""

    def of(self, raws: object) -> list[Planned]:
        return list(self._all(raws, None, Loops()))

    def _all(self, raws: object, parent: Planned | None, loops: Loops) -> Iterator[Planned]:
        if not isinstance(raws, list):
            raise invalid(
                "The resources of a template must be an array; symbolic names (languageVersion "
                "2.0) are not supported here"
            )
        for raw in raws:
            if not isinstance(raw, dict):
                raise invalid("A resource of a template must be an object")
            resource = {key.lower(): value for key, value in raw.items()}
            for copy, its_loops in self._copies(resource, loops):
                planned = self._planned(resource, raw, parent, copy, its_loops)
                self._count(planned)
                yield planned
                yield from self._all(resource.get("resources") or [], planned, its_loops)

    def _count(self, planned: Planned) -> None:
        try:
            self._budget.count_resource()
        except Fault as fault:
            raise invalid_at(planned.name, "", fault) from None

    def _copies(self, resource: Json, loops: Loops) -> Iterator[tuple[str, Loops]]:
        copy = resource.get("copy")
        if copy is None:
            yield "", loops
            return
        walk = self._walker(_name_in(resource), loops)
        if not isinstance(copy, dict):
            raise invalid_at(_name_in(resource), "copy", Fault("it must be an object"))
        name = walk.text(copy.get("name"), "copy.name")
        try:
            count = copies_of(walk.value(copy.get("count"), "copy.count"))
        except Fault as fault:
            raise invalid_at(_name_in(resource), "copy.count", fault) from None
        self.copies.add(name.lower())
        for at in range(count):
            yield name.lower(), loops.of_resource(name, at)

    def _planned(
        self, resource: Json, raw: Json, parent: Planned | None, copy: str, loops: Loops
    ) -> Planned:
        walk = self._walker(_name_in(resource), loops)
        if resource.get("scope") is not None:
            raise invalid_at(_name_in(resource), "scope", Fault("scopes are not supported here"))
        type = walk.text(resource.get("type"), "type")
        name = walk.text(resource.get("name"), "name")
        if parent is not None:
            type, name = f"{parent.type}/{type}", f"{parent.name}/{name}"
        group = _group(walk, resource) if type.lower() == DEPLOYMENT else ""
        return Planned(
            id=self._checked_id(type, name, group),
            type=type,
            name=name,
            api_version=walk.text(resource.get("apiversion"), "apiVersion"),
            is_wanted=_truth(walk, name, resource.get("condition", True)),
            copy=copy,
            depends_on=_texts(walk, name, resource.get("dependson") or []),
            raw={key: value for key, value in raw.items() if key.lower() not in _OWN_WORDS},
            loops=loops,
            group=group,
        )

    def _checked_id(self, type: str, name: str, group: str) -> str:
        types, names = type.split("/")[1:], name.split("/")
        if not types or len(types) != len(names) or not all(types) or not all(names):
            raise invalid(
                f"The template resource '{shown(name)}' for type '{shown(type)}' has incorrect "
                "segment lengths. A nested resource type must have identical number of segments "
                "as its resource name. A root resource type must have segment length one greater "
                "than its resource name"
            )
        id = self._id_of(type, *names, group=group)
        try:
            path = resource_path(id)
        except BadPath as problem:
            raise invalid(
                f"The template resource '{shown(name)}' is not valid: {problem}"
            ) from None
        if path.names != tuple(names) or path.key != type.lower() or path.tail:
            raise invalid(f"The name of the template resource '{shown(name)}' is not valid")
        return id


def _name_in(resource: Json) -> str:
    """As it is written; good enough to find it."""
    return str(resource.get("name", ""))


def _group(walk: Walk, resource: Json) -> str:
    """The resource group that a nested deployment names; empty: none."""
    if resource.get("subscriptionid") is not None:
        fault = Fault("a deployment to another subscription is not supported here")
        raise invalid_at(_name_in(resource), "subscriptionId", fault)
    raw = resource.get("resourcegroup")
    return "" if raw is None else walk.text(raw, "resourceGroup")


def _truth(walk: Walk, name: str, raw: object) -> bool:
    value = walk.value(raw, "condition")
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise invalid_at(name, "condition", Fault("it must be true or false"))
    return value


def _texts(walk: Walk, name: str, raw: object) -> tuple[str, ...]:
    value = walk.value(raw, "dependsOn")
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise invalid_at(name, "dependsOn", Fault("it must be an array of strings"))
    return tuple(str(each) for each in value)
