"""The functions whose answer depends on their arguments alone, by name in lower case."""

from collections.abc import Mapping

from fairwarning.azure_api.templates.functions import collections, logic, numbers, text
from fairwarning.azure_api.templates.functions.signature import Function

PLAIN: Mapping[str, Function] = {
    **text.FUNCTIONS,
    **numbers.FUNCTIONS,
    **logic.FUNCTIONS,
    **collections.FUNCTIONS,
}
