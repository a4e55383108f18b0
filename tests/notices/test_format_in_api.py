"""The format of a webhook in the operator API."""

from fairwarning.notices.model import DEFAULT_KINDS, EVENT_GRID_KINDS
from tests.control.rig import running

HOOK = {"kind": "webhook", "url": "https://ops.example/x"}


async def test_the_format_is_shown_and_decides_what_is_told_by_default() -> None:
    async with running() as rig:
        made = await rig.post("/notices", {**HOOK, "name": "a", "format": "eventgrid"}, 201)
        assert (made["format"], made["filters"]["kinds"]) == ("eventgrid", list(EVENT_GRID_KINDS))
        usual = await rig.post("/notices", {**HOOK, "name": "b"}, 201)
        assert (usual["format"], usual["filters"]["kinds"]) == ("cloudevents", list(DEFAULT_KINDS))
        listed = (await rig.get("/notices"))["notices"]
        assert {each["name"]: each["format"] for each in listed} == {
            "a": "eventgrid",
            "b": "cloudevents",
        }


async def test_an_unknown_format_or_kind_is_refused() -> None:
    async with running() as rig:
        await rig.post("/notices", {**HOOK, "name": "a", "format": "xml"}, 422)
        kinds = {"filters": {"kinds": ["Approved"]}}
        refused = await rig.post(
            "/notices", {**HOOK, "name": "a", "format": "eventgrid", **kinds}, 422
        )
        assert refused["code"] == "notice-invalid"
