"""Finds which resources depend on others, and the order in which to create them."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.templates.errors import TemplateError, invalid, shorten
from fairwarning.azure_api.templates.resolve import WantedResource
from fairwarning.azure_api.templates.resource_copies import PlannedResource

_PARENTS_MAX = 10


class ResourceIndex:
    """Finds the resources of a template. Resources are returned as indexes in `resources`.

    The search word is a symbolic name, an id, a type with a name, a name, or the name of a copy
    loop. The case does
    not matter.
    """

    def __init__(self, resources: Sequence[PlannedResource], copies: Iterable[str]) -> None:
        self.resources = resources
        self._copies = frozenset(copies)
        self._by_id: dict[str, int] = {}
        self._by_word: dict[str, list[int]] = defaultdict(list)
        self._by_symbol: dict[str, list[int]] = defaultdict(list)
        for number, each in enumerate(resources):
            self._add(number, each)

    def _add(self, number: int, each: PlannedResource) -> None:
        id = each.id.lower()
        before = self._by_id.get(id)
        if before is not None and each.is_wanted and self.resources[before].is_wanted:
            raise invalid(f"The resource '{each.id}' is defined multiple times in a template")
        if before is None or each.is_wanted:
            self._by_id[id] = number
        for symbol in each.symbols:
            self._by_symbol[symbol].append(number)
        words = {id.partition("/providers/")[2], f"{each.type}/{each.name}".lower()}
        for word in (*words, each.name.lower(), *([each.copy] if each.copy else [])):
            self._by_word[word].append(number)

    def find(self, word: str) -> list[int]:
        """Returns the resources that an entry of `dependsOn` names.

        Raises ArmError if the template has no such resource or copy loop.
        """
        key = word.strip("/").lower()
        if key in self._by_symbol:
            return self._by_symbol[key]
        if f"/{key}" in self._by_id:
            return [self._by_id[f"/{key}"]]
        if key not in self._by_word and key not in self._copies:
            raise invalid(f"The resource '{shorten(word)}' is not defined in the template")
        return self._by_word.get(key, [])

    def nearest_parent(self, id: str) -> int | None:
        """Returns the resource with this id.

        If there is none, returns its nearest parent, or None.
        """
        key = id.lower()
        for _ in range(_PARENTS_MAX):
            if key in self._by_id:
                return self._by_id[key]
            key = key.rsplit("/", 2)[0]
        return None

    def wanted(self, name: str) -> WantedResource | None:
        """Returns the resource that the argument of `reference` names, which is an id or a name.

        It is None if no resource, or more than one, has this name.
        """
        if name.lower() in self._by_symbol:
            numbers = self._by_symbol[name.lower()]
        elif name.startswith("/"):
            number = self._by_id.get(name.rstrip("/").lower())
            numbers = [] if number is None else [number]
        else:
            numbers = self._by_word.get(name.strip("/").lower(), [])
        if len(numbers) != 1:
            return None
        found = self.resources[numbers[0]]
        return WantedResource(found.id, found.api_version)

    def all_of(self, symbol: str) -> list[PlannedResource]:
        """Returns the resources of a symbolic name, without those whose condition is false.

        Raises TemplateError if there is no such name.
        """
        numbers = self._by_symbol.get(symbol.lower())
        if numbers is None and symbol.lower() not in self._copies:
            raise TemplateError(f"the template has no resource '{shorten(symbol)}'")
        return [self.resources[number] for number in numbers or ()]


def needs_of(directory: ResourceIndex, number: int, wanted: Iterable[WantedResource]) -> set[int]:
    """Returns the resources that must be created before the resource `number`.

    They come from `dependsOn`, from the references in `wanted`, and from the parent. Raises
    ArmError.
    """
    each = directory.resources[number]
    found: set[int] = set()
    for word in {word.strip("/").lower(): word for word in each.depends_on}.values():
        find = directory.find(word)
        if find == [number]:
            raise _circular(each)
        found.update(find)
    nearest_parent = [directory.nearest_parent(other.id) for other in wanted]
    nearest_parent.append(directory.nearest_parent(each.id.rsplit("/", 2)[0]))
    found.update(at for at in nearest_parent if at is not None)
    return {at for at in found if at != number and directory.resources[at].is_wanted}


def creation_order(
    resources: Sequence[PlannedResource], needs_of: Mapping[int, set[int]]
) -> list[int]:
    """Returns the resources in the order of the template, but each one after those that it needs.

    Raises ArmError if resources depend on each other in a circle.
    """
    waiting = {number: len(needs_of[number]) for number in needs_of}
    followers: dict[int, list[int]] = defaultdict(list)
    for number, others in needs_of.items():
        for other in others:
            followers[other].append(number)
    ready = [number for number, count in waiting.items() if not count]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        number = heapq.heappop(ready)
        order.append(number)
        for follower in followers[number]:
            waiting[follower] -= 1
            if not waiting[follower]:
                heapq.heappush(ready, follower)
    if len(order) < len(needs_of):
        raise _circular(resources[_find_in_circle(needs_of, set(needs_of) - set(order))])
    return order


def _find_in_circle(needs_of: Mapping[int, set[int]], left: set[int]) -> int:
    """Returns a resource that is part of the circle, and does not merely depend on it."""
    at, seen = min(left), set[int]()
    while at not in seen:
        seen.add(at)
        at = min(needs_of[at] & left)
    return at


def _circular(each: PlannedResource) -> ArmError:
    return invalid(f"Circular dependency detected on resource: '{each.id}'")
