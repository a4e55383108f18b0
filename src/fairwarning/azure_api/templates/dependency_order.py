"""Which resources must exist before others, and so in which order they are made."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from fairwarning.azure_api.errors import ArmError
from fairwarning.azure_api.templates.copies import Planned
from fairwarning.azure_api.templates.errors import invalid, shown
from fairwarning.azure_api.templates.resolve import Wanted

_PARENTS_MAX = 10


class Directory:
    """The resources of a template by all that a template may call them, in any case."""

    def __init__(self, resources: Sequence[Planned], copies: Iterable[str]) -> None:
        self.resources = resources
        self._copies = frozenset(copies)
        self._by_id: dict[str, int] = {}
        self._by_word: dict[str, list[int]] = defaultdict(list)
        for number, each in enumerate(resources):
            self._add(number, each)

    def _add(self, number: int, each: Planned) -> None:
        id = each.id.lower()
        before = self._by_id.get(id)
        if before is not None and each.is_wanted and self.resources[before].is_wanted:
            raise invalid(f"The resource '{each.id}' is defined multiple times in a template")
        if before is None or each.is_wanted:
            self._by_id[id] = number
        words = {id.partition("/providers/")[2], f"{each.type}/{each.name}".lower()}
        for word in (*words, each.name.lower(), *([each.copy] if each.copy else [])):
            self._by_word[word].append(number)

    def meant(self, word: str) -> list[int]:
        """By an id, `type/name`, a name, or the name of a loop. Raises ArmError."""
        key = word.strip("/").lower()
        if f"/{key}" in self._by_id:
            return [self._by_id[f"/{key}"]]
        if key not in self._by_word and key not in self._copies:
            raise invalid(f"The resource '{shown(word)}' is not defined in the template")
        return self._by_word.get(key, [])

    def above(self, id: str) -> int | None:
        """The resource of this id, or the nearest of those that it is a part of."""
        key = id.lower()
        for _ in range(_PARENTS_MAX):
            if key in self._by_id:
                return self._by_id[key]
            key = key.rsplit("/", 2)[0]
        return None

    def wanted(self, name: str) -> Wanted | None:
        """What `reference` means: an id, or the name that only one resource has."""
        if name.startswith("/"):
            number = self._by_id.get(name.rstrip("/").lower())
            numbers = [] if number is None else [number]
        else:
            numbers = self._by_word.get(name.strip("/").lower(), [])
        if len(numbers) != 1:
            return None
        found = self.resources[numbers[0]]
        return Wanted(found.id, found.api_version)


def needs(directory: Directory, number: int, wanted: Iterable[Wanted]) -> set[int]:
    """What must exist before this one: as it says, as it refers to, and its parents."""
    each = directory.resources[number]
    found: set[int] = set()
    for word in {word.strip("/").lower(): word for word in each.depends_on}.values():
        meant = directory.meant(word)
        if meant == [number]:
            raise _circular(each)
        found.update(meant)
    above = [directory.above(other.id) for other in wanted]
    above.append(directory.above(each.id.rsplit("/", 2)[0]))
    found.update(at for at in above if at is not None)
    return {at for at in found if at != number and directory.resources[at].is_wanted}


def ordered(resources: Sequence[Planned], needs: Mapping[int, set[int]]) -> list[int]:
    """As the template has them, but each after those that it needs. Raises ArmError."""
    waiting = {number: len(needs[number]) for number in needs}
    followers: dict[int, list[int]] = defaultdict(list)
    for number, others in needs.items():
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
    if len(order) < len(needs):
        raise _circular(resources[_in_circle(needs, set(needs) - set(order))])
    return order


def _in_circle(needs: Mapping[int, set[int]], left: set[int]) -> int:
    """One that is in a circle, not just behind it."""
    at, seen = min(left), set[int]()
    while at not in seen:
        seen.add(at)
        at = min(needs[at] & left)
    return at


def _circular(each: Planned) -> ArmError:
    return invalid(f"Circular dependency detected on resource: '{each.id}'")
