"""utcNow and newGuid, in defaults of parameters and nowhere else."""

import re
from typing import Any

import msgspec
import pytest

from fairwarning.azure_api.templates.default_functions import formatted
from fairwarning.azure_api.templates.errors import TemplateError
from fairwarning.azure_api.templates.plan import Plan
from fairwarning.core.instants import Instant
from tests.azure_api.templates.plans import PLACE, network, refusal

NOW = Instant(1_767_323_045_678)
CONTEXT = msgspec.structs.replace(PLACE, now=NOW, seed="11111111-1111-1111-1111-111111111111")


def defaults(**values: str) -> dict[str, Any]:
    parameters = {name: {"type": "string", "defaultValue": each} for name, each in values.items()}
    shown = Plan({"resources": [], "parameters": parameters}, None, CONTEXT).parameters
    return {name: each["value"] for name, each in shown.items()}


def test_a_default_may_be_the_time_or_a_new_guid() -> None:
    found = defaults(a="[utcNow()]", b="[utcNow('yyyy-MM-dd')]", c="[newGuid()]", d="[newGuid()]")
    assert (found["a"], found["b"]) == ("20260102T030405Z", "2026-01-02")
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", found["c"])
    assert found["c"] != found["d"]
    assert defaults(a="[concat('x', newGuid())]") == defaults(a="[concat('x', newGuid())]")


@pytest.mark.parametrize("function", ["utcNow", "newGuid"])
def test_they_are_refused_elsewhere(function: str) -> None:
    for members in (
        {"variables": {"a": f"[{function}()]"}},
        {"outputs": {"a": {"type": "string", "value": f"[{function}()]"}}},
        {"resources": [network(f"[{function}()]")]},
    ):
        told = refusal(**members)
        assert "is not expected at this location" in told
        assert function in told


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("u", "2026-01-02 03:04:05Z"),
        ("d", "01/02/2026"),
        ("R", "Fri, 02 Jan 2026 03:04:05 GMT"),
        ("o", "2026-01-02T03:04:05.6780000Z"),
        ("yy.M.d H:m:s", "26.1.2 3:4:5"),
        ("hh tt 'at' \\h", "03 AM at h"),
        ("fff", "678"),
    ],
)
def test_formats_are_those_of_dotnet(form: str, text: str) -> None:
    assert formatted(NOW, form) == text


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(TemplateError, match="not supported"):
        formatted(NOW, "yyyyy")
