"""A short name of a scope."""

from fairwarning.core.model import ScopeId
from fairwarning.core.scope_names import is_meant


def test_only_a_scale_set_has_groups() -> None:
    assert is_meant(ScopeId("0000/default/scale-set/web/7"), "web")
    assert not is_meant(ScopeId("0000/default/vm/7"), "vm")
    assert not is_meant(ScopeId("0000/default/availability-set/7"), "default/availability-set")


def test_the_whole_id_of_a_scale_set_means_each_of_its_groups() -> None:
    assert is_meant(ScopeId("0000/default/scale-set/web/7"), "0000/default/scale-set/web")
