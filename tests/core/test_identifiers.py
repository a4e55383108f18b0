"""GUIDs that are derived."""

import uuid

from hypothesis import given
from hypothesis import strategies as st

from fairwarning.core.identifiers import guid_of

NAMESPACE = uuid.UUID("6f1c9f3e-52a4-4c3b-9a8e-0d8c1d2f7a10")


@given(st.text(st.characters(codec="utf-8")))
def test_it_is_the_name_based_guid_of_the_standard(text: str) -> None:
    assert guid_of(text) == str(uuid.uuid5(NAMESPACE, text))
