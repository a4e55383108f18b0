"""The format of a webhook in the operator API."""

from fairwarning.notifications.model import DEFAULT_KINDS, EVENT_GRID_KINDS
from tests.operator_api.rig import running

HOOK = {"kind": "webhook", "url": "https://ops.example/x"}


async def test_the_format_is_shown_and_decides_what_is_told_by_default() -> None:
    async with running() as rig:
        made = await rig.post("/notifications", {**HOOK, "name": "a", "format": "eventgrid"}, 201)
        assert (made["format"], made["filters"]["kinds"]) == ("eventgrid", list(EVENT_GRID_KINDS))
        usual = await rig.post("/notifications", {**HOOK, "name": "b"}, 201)
        assert (usual["format"], usual["filters"]["kinds"]) == ("cloudevents", list(DEFAULT_KINDS))
        listed = (await rig.get("/notifications"))["notifications"]
        assert {each["name"]: each["format"] for each in listed} == {
            "a": "eventgrid",
            "b": "cloudevents",
        }


async def test_an_unknown_format_or_kind_is_refused() -> None:
    async with running() as rig:
        await rig.post("/notifications", {**HOOK, "name": "a", "format": "xml"}, 422)
        kinds = {"filters": {"kinds": ["Approved"]}}
        refused = await rig.post(
            "/notifications", {**HOOK, "name": "a", "format": "eventgrid", **kinds}, 422
        )
        assert refused["code"] == "notification-invalid"


async def test_a_target_is_shown_as_it_was_asked_for_but_for_its_secrets() -> None:
    filters = {
        "types": ["Reboot", "Freeze"],
        "scopes": ["web"],
        "sources": ["User"],
        "kinds": ["Started", "Failed"],
    }
    template = {"title": "$type", "body": "$text!"}
    async with running() as rig:
        asked = {**HOOK, "name": "a", "filters": filters, "template": template}
        made = await rig.post("/notifications?why=on+call", asked, 201)
        (shown,) = (await rig.get("/notifications"))["notifications"]
        secret = made.pop("secret")
        assert shown == made
        assert (shown["filters"], shown["template"]) == (filters, template)
        assert (shown["url"], shown["createdBy"]) == ("https://ops.example/…", "operator:local")
        (entry, *_) = (await rig.get("/history"))["entries"]
        assert (entry["why"], secret in str(entry)) == ("on call", False)


async def test_who_wants_to_hear_of_nothing_is_asked_what_he_wants() -> None:
    async with running() as rig:
        asked = {**HOOK, "name": "a", "filters": {"kinds": []}}
        assert "wants no kind" in (await rig.post("/notifications", asked, 422))["detail"]
        empty = {**HOOK, "name": "a", "template": {"body": " "}}
        assert "body is empty" in (await rig.post("/notifications", empty, 422))["detail"]
        assert (await rig.get("/notifications"))["notifications"] == []
