"""Which scope a short name means, and the shortest name of a scope."""

import pytest

from fairwarning.core.model import ScopeId
from fairwarning.core.scope_names import is_meant, resource_of, short_name

SET = ScopeId("sub/group/scale-set/web/10")
OLD = ScopeId("sub/group/availability-set/web")
NUMBERED = ScopeId("sub/group/availability-set/7")


@pytest.mark.parametrize(
    ("id", "name", "is_so"),
    [
        (SET, SET, True), (SET, "web/10", True), (SET, "web", True), (SET, "scale-set/web", True),
        (SET, "sub/group/scale-set/web", True), (SET, "eb", False), (SET, "web/1", False),
        (SET, "Web", False), (SET, "group", False), (OLD, "web", True), (OLD, "b", False),
        (NUMBERED, "7", True), (NUMBERED, "availability-set", False),
    ],
)  # fmt: skip
def test_the_end_of_an_id_means_it(id: str, name: str, is_so: bool) -> None:
    assert is_meant(id, name) is is_so


def test_only_a_scale_set_has_placement_groups() -> None:
    assert resource_of(SET) == "sub/group/scale-set/web"
    assert resource_of(NUMBERED) == NUMBERED
    assert resource_of(ScopeId("sub/scale-set/vm/7")) == "sub/scale-set/vm/7"


def test_a_short_name_means_nobody_else() -> None:
    group, elsewhere = ScopeId("sub/group/scale-set/web/0"), ScopeId("sub/other/scale-set/web/0")
    assert short_name(OLD, [OLD]) == "web"
    assert short_name(OLD, [OLD, SET]) == "availability-set/web"
    assert short_name(group, [group, OLD]) == "scale-set/web"
    assert short_name(group, [group, elsewhere]) == "group/scale-set/web"
    assert short_name(group, [group, SET]) == group
