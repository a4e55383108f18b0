"""What a body may say, with Azure's own limits."""

import pytest

from fairwarning.control.arm.bodies import tags_of
from fairwarning.control.arm.errors import ArmError


def test_tags_as_they_are() -> None:
    assert tags_of({"tags": {"role": "web"}}) == {"role": "web"}
    assert tags_of({}) == {}


@pytest.mark.parametrize(
    "tags",
    [
        {f"t{n}": "" for n in range(51)},
        {"n" * 513: ""},
        {"name": "v" * 257},
    ],
)
def test_too_many_or_too_long_tags_are_refused_in_few_words(tags: dict[str, str]) -> None:
    with pytest.raises(ArmError) as refused:
        tags_of({"tags": tags})
    assert refused.value.failure.code == "InvalidTagNameOrValue"
    assert len(refused.value.failure.message) < 200
