"""GUIDs and computer names that are derived."""

import uuid

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fairwarning.core.identifiers import computer_name, guid_of, placement_group_id, vm_id
from fairwarning.core.model import InstanceName
from fairwarning.core.resources import AvailabilitySet, Member, Orchestration, ScaleSet, expand

NAMESPACE = uuid.UUID("6f1c9f3e-52a4-4c3b-9a8e-0d8c1d2f7a10")


@given(st.text(st.characters(codec="utf-8")))
def test_it_is_the_name_based_guid_of_the_standard(text: str) -> None:
    assert guid_of(text) == str(uuid.uuid5(NAMESPACE, text))


def test_only_an_instance_that_is_named_after_its_scale_set_has_another_computer_name() -> None:
    (web,) = expand(AvailabilitySet(name="web", members=(Member(name="web_0"),)))
    (uniform,) = expand(ScaleSet(name="web", capacity=1), first_number=36)
    flexible = ScaleSet(
        name="web", capacity=1, orchestration=Orchestration.FLEXIBLE, suffixes=("abcd1234",)
    )
    (own,) = expand(flexible)
    joined = replace(own.roster.live[0], name=InstanceName("db"))
    assert computer_name(web.roster, web.roster.live[0]) == "web_0"
    assert computer_name(uniform.roster, uniform.roster.live[0]) == "web000010"
    assert computer_name(own.roster, joined) == "db"
    hostname = computer_name(own.roster, own.roster.live[0])
    assert hostname.startswith("web")
    assert len(hostname) == 9
    prefixed = replace(own.roster, computer_name_prefix="front")
    assert computer_name(prefixed, own.roster.live[0]) == "front" + hostname[3:]


def test_an_instance_keeps_its_id_and_shares_it_with_nobody() -> None:
    (web,) = expand(AvailabilitySet(name="web", members=(Member(name="a"), Member(name="b"))))
    (other,) = expand(AvailabilitySet(name="db", members=(Member(name="a"),)))
    ids = [vm_id(scope, each) for scope in (web, other) for each in scope.roster.live]
    assert len({*ids}) == 3
    assert placement_group_id(web) != placement_group_id(other)
