"""Parses ARM paths and resource ids. Pure.

Paths are compared without regard to case, and two slashes count as one. A path that is not below
`providers` belongs to Microsoft.Resources. So all paths have the same form: types and names
alternate, and an optional last word (the tail) is a list, a view or a verb.
"""

from dataclasses import dataclass, replace

ROOT_NAMESPACE = "Microsoft.Resources"
_CASES = {
    each.lower(): each
    for each in (
        "Microsoft.Compute", "Microsoft.Network", "Microsoft.Resources", "Microsoft.Maintenance",
        "availabilitySets", "virtualMachines", "virtualMachineScaleSets", "networkInterfaces",
        "publicIPAddresses", "virtualNetworks", "loadBalancers", "networkSecurityGroups",
        "inboundNatRules", "subnets", "deployments", "scheduledEvents", "Microsoft.Authorization",
        "locks", "Microsoft.Insights", "autoscaleSettings",
        "maintenanceConfigurations", "configurationAssignments", "applyUpdates",
    )
}  # fmt: skip
"""Azure's spelling of namespaces and types. Callers may write them in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourcePath:
    subscription: str = ""
    group: str = ""
    namespace: str = ROOT_NAMESPACE
    types: tuple[str, ...] = ()
    """The types below the namespace, in Azure's spelling if it is known."""
    names: tuple[str, ...] = ()
    """The name for each type, as the caller wrote it."""
    tail: str = ""
    """The last word of the path, if no name follows it, in lower case.

    It is a list, view or verb.
    """
    parent: "ResourcePath | None" = None
    """The resource that an extension resource belongs to. It is None for all other resources."""

    @property
    def name(self) -> str:
        return self.names[-1] if self.names else ""

    @property
    def type(self) -> str:
        """The full type, such as `Microsoft.Compute/virtualMachineScaleSets/virtualMachines`."""
        return "/".join((self.namespace, *self.types))

    @property
    def key(self) -> str:
        return self.type.lower()

    @property
    def id(self) -> str:
        """The id of the resource, without the tail."""
        if self.namespace == ROOT_NAMESPACE and self.types[:1] == ("subscriptions",):
            return "".join(
                f"/{'resourceGroups' if type == 'resourcegroups' else type}/{name}"
                for type, name in zip(self.types, self.names, strict=True)
            )
        start = self.parent.id if self.parent else self.place
        pairs = "".join(f"/{t}/{n}" for t, n in zip(self.types, self.names, strict=True))
        return f"{start}/providers/{self.namespace}{pairs}"

    @property
    def place(self) -> str:
        """The id of the resource group. If the path has no group, the id of the subscription."""
        if not self.subscription:
            return ""
        group = f"/resourceGroups/{self.group}" if self.group else ""
        return f"/subscriptions/{self.subscription}{group}"

    def named(self, *names: str) -> "ResourcePath":
        """Returns the same path with these names. It is used to correct the spelling of names."""
        return replace(self, names=names)

    def up(self) -> "ResourcePath":
        """Returns the path of the resource that contains this one."""
        return replace(self, types=self.types[:-1], names=self.names[:-1], tail="")


class BadPath(ValueError):
    """The text is not an ARM path."""


def resource_path(text: str) -> ResourcePath:
    """Parses the path of a request, or an id in a body. Raises BadPath if the text is no path."""
    parts = [each for each in text.split("/") if each]
    # Types and names alternate, also after a namespace, so a name may be `providers` too.
    splits = [at for at in range(0, len(parts) - 1, 2) if parts[at].lower() == "providers"]
    found = root = _rooted(parts[: splits[0]] if splits else parts)
    for number, at in enumerate(splits):
        until = splits[number + 1] if number + 1 < len(splits) else len(parts)
        found = _provided(root, parts[at + 1 : until], found if number else None)
    return found


def find_path(text: str) -> ResourcePath | None:
    """Parses the id of a resource. Returns None if the id is not valid."""
    try:
        path = resource_path(text)
    except BadPath:
        return None
    return None if path.tail else path


def resource_id(subscription: str, group: str, type: str, *names: str) -> str:
    """Returns the id of a resource. `type` is the full type, `names` has a name for each type."""
    namespace, *types = type.split("/")
    return ResourcePath(
        subscription=subscription, group=group, namespace=namespace, types=tuple(types), names=names
    ).id  # fmt: skip


def same_id(one: str, other: str) -> bool:
    return one.strip("/").lower() == other.strip("/").lower()


def _rooted(parts: list[str]) -> ResourcePath:
    types = tuple(part.lower() for part in parts[0 : len(parts) // 2 * 2 : 2])
    names = tuple(parts[1::2])
    tail = parts[-1].lower() if len(parts) % 2 else ""
    if types[:1] not in ((), ("subscriptions",)):
        raise BadPath(f"/{'/'.join(parts)} begins with no subscription")
    return ResourcePath(
        subscription=names[0] if names else "",
        group=names[1] if types[1:2] == ("resourcegroups",) else "",
        types=types,
        names=names,
        tail=tail,
    )


def _provided(root: ResourcePath, parts: list[str], parent: ResourcePath | None) -> ResourcePath:
    namespace, rest = parts[0], parts[1:]
    return ResourcePath(
        subscription=root.subscription,
        group=root.group,
        namespace=_CASES.get(namespace.lower(), namespace),
        types=tuple(_CASES.get(t.lower(), t) for t in rest[0 : len(rest) // 2 * 2 : 2]),
        names=tuple(rest[1::2]),
        tail=rest[-1].lower() if len(rest) % 2 else "",
        parent=parent,
    )
