"""A scope's instances as people look at them: by update domain, each with one state. Pure."""

from fairwarning.core.model import Phase, Power
from fairwarning.operator_api.schemas import Instance, Scope


def by_update_domain(scope: Scope) -> list[tuple[int, list[Instance]]]:
    """Only domains that have somebody, in order; in each, by name."""
    found: dict[int, list[Instance]] = {}
    for instance in scope.instances:
        found.setdefault(instance.update_domain, []).append(instance)
    return [(domain, sorted(found[domain], key=_in_order)) for domain in sorted(found)]


def state_of(instance: Instance) -> str:
    """The one thing that matters most about it now; also the name of its colour."""
    phases = {each.phase for each in instance.pending}
    if Phase.STARTED in phases:
        return "started"
    if Phase.SCHEDULED in phases:
        return "scheduled"
    return "running" if instance.power == Power.RUNNING else "down"


def silent(scope: Scope) -> list[str]:
    """Who has not asked this server for its document: they get no notice."""
    return [each.name for each in scope.instances if each.polling is None]


def _in_order(instance: Instance) -> tuple[str, int, str]:
    """`web_2` before `web_10`."""
    start, _, number = instance.name.replace("-", "_").rpartition("_")
    is_number = number.isascii() and number.isdigit()
    return (start, int(number), "") if is_number else (instance.name, -1, "")
