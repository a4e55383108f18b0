"""What a body may say, with Azure's own limits."""

from typing import Any

import pytest

from fairwarning.azure_api.app import BODY_BYTES_MAX, SMALL_BYTES
from fairwarning.azure_api.body_values import tags_of
from fairwarning.azure_api.errors import ArmError
from fairwarning.operator_api.subprocess_pool import SubprocessPool
from tests.azure_api.arm_client import ArmClient, S, asking


def test_tags_as_they_are() -> None:
    assert tags_of({"tags": {"role": "web"}}) == {"role": "web"}
    assert tags_of({}) == {}
    most = {f"{n:0512}": "v" * 256 for n in range(50)}
    assert tags_of({"tags": most}) == most


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
    assert refused.value.failure.code == "InvalidRequestContent"
    assert len(refused.value.failure.message) < 200


async def sent(arm: ArmClient, padding: int) -> int:
    """A body with so many characters; the status of the answer."""
    body = {"location": "westeurope", "managedBy": "p" * padding}
    return (await arm.answer("PUT", f"{S}/resourcegroups/shop", body)).status_code


async def test_a_resource_says_less_than_a_template_may() -> None:
    async with asking() as arm:
        assert await sent(arm, BODY_BYTES_MAX) == 413
        assert await sent(arm, 10) == 201


async def test_a_large_body_counts_for_who_sent_it(monkeypatch: pytest.MonkeyPatch) -> None:
    callers: list[str] = []

    async def run(_: SubprocessPool, job: str, given: Any, *, caller: str) -> list[bytes]:
        callers.append(caller)
        return [b"ok", b'{"location": "westeurope"}']

    monkeypatch.setattr(SubprocessPool, "run", run)
    async with asking() as arm:
        made = await arm.rig.post("/tokens", {"name": "ana", "role": "operator"}, 201)
        arm.http.headers["authorization"] = f"Bearer {made['secret']}"
        assert await sent(arm, SMALL_BYTES) == 201
    assert callers == [made["id"]]
