"""The functions whose answer depends on their arguments alone, by name in lower case."""

from collections.abc import Mapping

from fairwarning.control.arm.templates.functions import collections, logic, numbers, text
from fairwarning.control.arm.templates.functions.signature import Function

PLAIN: Mapping[str, Function] = {
    **text.FUNCTIONS,
    **numbers.FUNCTIONS,
    **logic.FUNCTIONS,
    **collections.FUNCTIONS,
}
