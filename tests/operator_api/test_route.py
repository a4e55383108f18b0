"""Which routes have a body that may be left out or be a fleet file, and which change nothing."""

from fairwarning.operator_api.app import ROUTES


def with_flag(flag: str) -> set[str]:
    return {f"{each.method} {each.path}" for each in ROUTES if getattr(each, flag)}


def test_each_route_says_what_its_body_is_and_whether_it_changes_anything() -> None:
    assert with_flag("is_body_optional") == {
        "POST /events/{id}/cancel",
        "POST /instances/{instance:path}/replace",
        "POST /requests/watch",
        "POST /scopes/{scope:path}/upgrade",
    }
    assert with_flag("takes_toml") == {"POST /fleet/plan", "PUT /fleet", "POST /fleet"}
    assert with_flag("is_preview") == {
        "POST /fleet/plan",
        "POST /rollouts/plan",
        "POST /scopes/{scope:path}/scale/plan",
    }
