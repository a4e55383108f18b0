"""What a repeated request relies on: which routes change nothing, take several steps or tell a
secret. The lists are written by hand; a new route of such a kind needs its line here.
"""

from fairwarning.operator_api.app import ROUTES

IN_STEPS = """
    POST /fleet
    POST /faults
    POST /instances/{instance:path}/replace
    POST /scopes/{scope:path}/scale
    POST /scopes/{scope:path}/model
    POST /scopes/{scope:path}/upgrade
    POST /scopes/{scope:path}/policy
    POST /notifications
    POST /notifications/dead-letters/{id}/retry
"""
PREVIEWS = """
    POST /fleet/plan
    POST /rollouts/plan
    POST /scopes/{scope:path}/scale/plan
"""
SECRET = """
    POST /tokens
    POST /notifications
"""
OUTWARD = """
    POST /notifications/{id}/test
"""
WITHOUT_BODY = """
    POST /events/{id}/cancel
    POST /instances/{instance:path}/replace
    POST /requests/watch
    POST /scopes/{scope:path}/upgrade
"""


def with_flag(flag: str) -> set[str]:
    return {f"{each.method} {each.path}" for each in ROUTES if getattr(each, flag)}


def lines(text: str) -> set[str]:
    return {line.strip() for line in text.strip().splitlines()}


def test_each_route_says_what_a_repetition_may_rely_on() -> None:
    assert with_flag("is_in_steps") == lines(IN_STEPS)
    assert with_flag("is_preview") == lines(PREVIEWS)
    assert with_flag("is_secret") == lines(SECRET)
    assert with_flag("is_outward") == lines(OUTWARD)
    assert with_flag("is_body_optional") == lines(WITHOUT_BODY)
    assert with_flag("takes_toml") == {"POST /fleet/plan", "PUT /fleet", "POST /fleet"}
