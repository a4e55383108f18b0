"""What an instance calls itself: its name, but in a scale set a prefix and six characters.

So a handler that takes its hostname for its name fails here as it does on Azure.
"""

from fairwarning.core.fleet import flexible_hostname, uniform_hostname
from fairwarning.core.lifecycle import number_of
from fairwarning.core.model import Instance, Roster, ScopeKind


def computer_name(roster: Roster, instance: Instance) -> str:
    is_of_a_set = roster.kind is ScopeKind.SCALE_SET
    # A machine of its own that joined a flexible set is not named after it.
    if not is_of_a_set or not instance.name.startswith(f"{roster.resource}_"):
        return instance.name
    number = number_of(roster, instance.name)
    if number is None:
        return flexible_hostname(prefix_of(roster), instance.name)
    return uniform_hostname(prefix_of(roster), number)


def prefix_of(roster: Roster) -> str:
    return roster.computer_name_prefix or roster.resource
