"""What an instance calls itself: its name, or in a uniform scale set a prefix and its number."""

from fairwarning.core.fleet import uniform_hostname
from fairwarning.core.lifecycle import number_of
from fairwarning.core.model import Instance, Roster


def computer_name(roster: Roster, instance: Instance) -> str:
    number = number_of(roster, instance.name)
    return instance.name if number is None else uniform_hostname(prefix_of(roster), number)


def prefix_of(roster: Roster) -> str:
    return roster.computer_name_prefix or roster.resource
