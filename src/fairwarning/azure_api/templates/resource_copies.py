"""Expands the resources of a template. Each copy and each child becomes a separate resource."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from fairwarning.azure_api.paths import BadPath, resource_path
from fairwarning.azure_api.request import Json
from fairwarning.azure_api.templates.errors import TemplateError, invalid, invalid_member, shorten
from fairwarning.azure_api.templates.limits import Budget, copies_of
from fairwarning.azure_api.templates.resolve import Loops, Resolver

DEPLOYMENT = "microsoft.resources/deployments"
EXTENSIONS = frozenset((
    "microsoft.authorization/locks", "microsoft.maintenance/configurationassignments",
    "microsoft.resources/tags",
))  # fmt: skip
"""The types of resources that have a `scope`, in lower case."""
_OWN_WORDS = frozenset(
    ("type", "name", "apiversion", "dependson", "copy", "condition", "comments", "resources",
     "scope", "metadata", "resourcegroup", "subscriptionid", "existing")
)  # fmt: skip
"""Members that are instructions for ARM. All other members are the body of the resource."""

ResolverFactory = Callable[[str, Loops], Resolver]
"""Returns a resolver for the resource of this name. The resolver does not allow `reference`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedResource:
    """One resource to create."""

    id: str
    type: str
    name: str
    """The name, preceded by the names of its parents, such as `SLB/NatRule`."""
    api_version: str
    is_wanted: bool
    """The value of the condition. The resource is created only if it is True."""
    copy: str
    """The name of the resource's copy loop in lower case. It is empty if there is no loop."""
    depends_on: tuple[str, ...]
    """The evaluated entries of `dependsOn`."""
    raw: Json
    loops: Loops
    symbols: tuple[str, ...] = ()
    """The symbolic names of the resource in lower case: its own, and in a loop `name[0]` too."""
    group: str = ""
    """The resource group that a nested deployment names. It is empty if it names none."""

    @property
    def is_deployment(self) -> bool:
        return self.type.lower() == DEPLOYMENT


class ResourceExpansion:
    """Expands the resources of one template. Raises ArmError."""

    def __init__(
        self,
        make_resolver: ResolverFactory,
        id_of: Callable[..., str],
        budget: Budget,
        *,
        is_symbolic: bool = False,
    ) -> None:
        """`is_symbolic` says whether the template may give its resources symbolic names."""
        self._make_resolver = make_resolver
        self._id_of = id_of
        self._budget = budget
        self._is_symbolic = is_symbolic
        self.copies: set[str] = set()
        """The names of all copy loops in lower case, including loops with a count of 0."""

    def of(self, raws: object) -> list[PlannedResource]:
        return list(self._all(raws, None, Loops()))

    def _all(
        self, raws: object, parent: PlannedResource | None, loops: Loops
    ) -> Iterator[PlannedResource]:
        for symbol, raw in self._entries(raws):
            if not isinstance(raw, dict):
                raise invalid("A resource of a template must be an object")
            resource = {key.lower(): value for key, value in raw.items()}
            if "copy" in resource and symbol:
                self.copies.add(symbol)
            for at, (copy, its_loops) in enumerate(self._copies(resource, loops)):
                symbols = (symbol, f"{symbol}[{at}]") if copy else (symbol,)
                planned = self._planned(resource, raw, parent, copy, its_loops)
                planned = replace(planned, symbols=symbols if symbol else ())
                self._count(planned)
                yield planned
                yield from self._all(resource.get("resources") or [], planned, its_loops)

    def _entries(self, raws: object) -> Iterable[tuple[str, object]]:
        """Returns the resources with their symbolic names, which are empty in an array."""
        if isinstance(raws, dict) and (self._is_symbolic or not raws):
            return [(name.lower(), raw) for name, raw in raws.items()]
        if isinstance(raws, list):
            return [("", raw) for raw in raws]
        raise invalid(
            "The resources of a template must be an array, or an object of symbolic names in a "
            "template with the languageVersion 2.0"
        )

    def _count(self, planned: PlannedResource) -> None:
        try:
            self._budget.count_resource()
        except TemplateError as error:
            raise invalid_member(planned.name, "", error) from None

    def _copies(self, resource: Json, loops: Loops) -> Iterator[tuple[str, Loops]]:
        copy = resource.get("copy")
        if copy is None:
            yield "", loops
            return
        resolver = self._make_resolver(_name_in(resource), loops)
        if not isinstance(copy, dict):
            raise invalid_member(_name_in(resource), "copy", TemplateError("it must be an object"))
        name = resolver.text(copy.get("name"), "copy.name")
        try:
            count = copies_of(resolver.value(copy.get("count"), "copy.count"))
        except TemplateError as error:
            raise invalid_member(_name_in(resource), "copy.count", error) from None
        self.copies.add(name.lower())
        for at in range(count):
            yield name.lower(), loops.of_resource(name, at)

    def _planned(
        self, resource: Json, raw: Json, parent: PlannedResource | None, copy: str, loops: Loops
    ) -> PlannedResource:
        resolver = self._make_resolver(_name_in(resource), loops)
        type = resolver.text(resource.get("type"), "type")
        name = resolver.text(resource.get("name"), "name")
        if parent is not None:
            type, name = f"{parent.type}/{type}", f"{parent.name}/{name}"
        group = _group(resolver, resource) if type.lower() == DEPLOYMENT else ""
        scope = resource.get("scope")
        owner = "" if scope is None else resolver.text(scope, "scope")
        if owner and type.lower() not in EXTENSIONS:
            why = "only an extension resource such as a lock belongs to another resource"
            raise invalid_member(name, "scope", TemplateError(why))
        is_existing = resource.get("existing") is True and self._is_symbolic
        return PlannedResource(
            id=self._checked_id(type, name, group, owner),
            type=type,
            name=name,
            api_version=resolver.text(resource.get("apiversion"), "apiVersion"),
            is_wanted=not is_existing and _truth(resolver, name, resource.get("condition", True)),
            copy=copy,
            depends_on=_texts(resolver, name, resource.get("dependson") or []),
            raw={key: value for key, value in raw.items() if key.lower() not in _OWN_WORDS},
            loops=loops,
            group=group,
        )

    def _checked_id(self, type: str, name: str, group: str, owner: str) -> str:
        """Returns the id of a resource. `owner` is the resource that an extension belongs to."""
        types, names = type.split("/")[1:], name.split("/")
        if not types or len(types) != len(names) or not all(types) or not all(names):
            raise invalid(
                f"The template resource '{shorten(name)}' for type '{shorten(type)}' has incorrect "
                "segment lengths. A nested resource type must have identical number of segments "
                "as its resource name. A root resource type must have segment length one greater "
                "than its resource name"
            )
        id = self._id_of(type, *names, group=group)
        if owner:
            place = id[: id.lower().index("/providers/")]
            start = owner.rstrip("/") if owner.startswith("/") else f"{place}/providers/{owner}"
            id = f"{start}/{id[len(place) + 1 :]}"
        try:
            path = resource_path(id)
        except BadPath as problem:
            raise invalid(
                f"The template resource '{shorten(name)}' is not valid: {problem}"
            ) from None
        if path.names != tuple(names) or path.key != type.lower() or path.tail:
            raise invalid(f"The name of the template resource '{shorten(name)}' is not valid")
        return id


def _name_in(resource: Json) -> str:
    """Returns the name as it is written in the template. It is used in messages."""
    return str(resource.get("name", ""))


def _group(resolver: Resolver, resource: Json) -> str:
    """Returns the resource group that a nested deployment names. It is empty if it names none."""
    if resource.get("subscriptionid") is not None:
        error = TemplateError("a deployment to another subscription is not supported here")
        raise invalid_member(_name_in(resource), "subscriptionId", error)
    raw = resource.get("resourcegroup")
    return "" if raw is None else resolver.text(raw, "resourceGroup")


def _truth(resolver: Resolver, name: str, raw: object) -> bool:
    value = resolver.value(raw, "condition")
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise invalid_member(name, "condition", TemplateError("it must be true or false"))
    return value


def _texts(resolver: Resolver, name: str, raw: object) -> tuple[str, ...]:
    value = resolver.value(raw, "dependsOn")
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise invalid_member(name, "dependsOn", TemplateError("it must be an array of strings"))
    return tuple(str(each) for each in value)
