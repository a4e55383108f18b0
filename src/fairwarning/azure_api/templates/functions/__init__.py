"""Collects the template functions whose results depend only on their arguments."""

from collections.abc import Mapping

from fairwarning.azure_api.templates.functions import collections, logic, numbers, text
from fairwarning.azure_api.templates.functions.signature import Function

PURE_FUNCTIONS: Mapping[str, Function] = {
    **text.FUNCTIONS,
    **numbers.FUNCTIONS,
    **logic.FUNCTIONS,
    **collections.FUNCTIONS,
}
