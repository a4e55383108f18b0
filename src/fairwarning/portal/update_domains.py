"""Groups the instances of a scope by update domain, each with one state to show. Pure."""

from fairwarning.core.model import Phase, Power
from fairwarning.operator_api.schemas import Instance, Scope


def by_update_domain(scope: Scope) -> list[tuple[int, list[Instance]]]:
    """Return the domains that have instances, in order, each with its instances sorted by name."""
    found: dict[int, list[Instance]] = {}
    for instance in scope.instances:
        found.setdefault(instance.update_domain, []).append(instance)
    return [(domain, sorted(found[domain], key=_in_order)) for domain in sorted(found)]


def state_of(instance: Instance) -> str:
    """Return the most important state of the instance, which is also the name of its colour."""
    phases = {each.phase for each in instance.pending}
    if Phase.STARTED in phases:
        return "started"
    if Phase.SCHEDULED in phases:
        return "scheduled"
    return "running" if instance.power == Power.RUNNING else "down"


def silent(scope: Scope) -> list[str]:
    """Return the names of the instances that have never polled this server."""
    return [each.name for each in scope.instances if each.polling is None]


def _in_order(instance: Instance) -> tuple[str, int, str]:
    """Return a sort key that puts `web_2` before `web_10`."""
    start, _, number = instance.name.replace("-", "_").rpartition("_")
    is_number = number.isascii() and number.isdigit()
    return (start, int(number), "") if is_number else (instance.name, -1, "")
