"""The routes of the API as HTTP has them."""

from tests.operator_api.rig import Rig


async def test_head_is_answered_as_get_without_a_body(rig: Rig) -> None:
    got, asked = await rig.api.get("/events"), await rig.api.head("/events")
    assert (asked.status_code, asked.content) == (200, b"")
    for name in ("content-type", "content-length"):
        assert asked.headers[name] == got.headers[name]
