"""The page about the fleet file is true: its examples can be read and its tables are complete."""

import re
from pathlib import Path

import pytest

from fairwarning.fleet_file.schema import SHAPES, ApproveShape, Defaults, MemberShape
from tests.support.fleet_files import read_toml

PAGE = (Path(__file__).parents[2] / "docs/fleet.md").read_text()
BLOCKS = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_its_examples_can_be_read(block: str) -> None:
    assert read_toml(block).resources


def test_it_names_every_key() -> None:
    structs = [*SHAPES.values(), ApproveShape, Defaults, MemberShape]
    keys = {key for struct in structs for key in struct.__struct_fields__}
    assert not [key for key in sorted(keys) if f"`{key}`" not in PAGE]


def test_its_table_says_which_kind_has_which_key() -> None:
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|.*\|$", PAGE.partition("| key | `vm`")[2], re.MULTILINE)
    for kind, cells in zip(
        SHAPES, zip(*(row.split("|") for _, row in rows), strict=True), strict=True
    ):
        said = {key for (key, _), cell in zip(rows, cells, strict=True) if cell.strip()}
        shape = set(SHAPES[kind].__struct_fields__) - set(Defaults.__struct_fields__)
        assert said == shape, kind
