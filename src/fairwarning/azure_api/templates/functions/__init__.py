"""Collects the template functions that depend on their arguments only."""

from collections.abc import Mapping

from fairwarning.azure_api.templates.functions import collections, logic, numbers, text
from fairwarning.azure_api.templates.functions.signature import Function

PURE_FUNCTIONS: Mapping[str, Function] = {
    **text.FUNCTIONS,
    **numbers.FUNCTIONS,
    **logic.FUNCTIONS,
    **collections.FUNCTIONS,
}
