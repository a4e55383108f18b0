"""The locator finds every value of any TOML text."""

import tomllib
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwarning.common.toml_lines import Lines, Path

TEXT = '''\
# a comment with [brackets] and "quotes
test = true

[[vm]]  # the first
name = "a # no comment"
addresses = [
  "10.0.0.1",  # one, two
  "10.0.0.2", "10.0.0.3",
]
tags.owner = 'x'
tags."a.b" = "]"

[[ vm ]]
name = """
several
lines with "quotes" and \\""" inside"""
tags = { a = "}", b = { c = [1, { d = 2 }] } }

  [vm.driver]
  type = "command"

[[set]]
[[set.instances]]
name = 'p'
[[set.instances]]
name = \'\'\'
q\'\'\'
[[set]]
[[set.instances]]
when = 2026-01-01T00:00:00Z
"quoted \\u0041" = 1.5
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 1),
        (("test",), 2),
        (("vm",), 4),
        (("vm", 0), 4),
        (("vm", 0, "name"), 5),
        (("vm", 0, "addresses"), 6),
        (("vm", 0, "addresses", 0), 7),
        (("vm", 0, "addresses", 1), 8),
        (("vm", 0, "addresses", 2), 8),
        (("vm", 0, "tags"), 10),
        (("vm", 0, "tags", "a.b"), 11),
        (("vm", 1), 13),
        (("vm", 1, "name"), 14),
        (("vm", 1, "tags", "b", "c", 1, "d"), 17),
        (("vm", 1, "driver"), 19),
        (("vm", 1, "driver", "type"), 20),
        (("set", 0, "instances", 0, "name"), 24),
        (("set", 0, "instances", 1), 25),
        (("set", 0, "instances", 1, "name"), 26),
        (("set", 1), 28),
        (("set", 1, "instances", 0, "when"), 30),
        (("set", 1, "instances", 0, "quoted A"), 31),
        (("vm", 1, "missing"), 13),
        (("vm", 0, "addresses", 7), 6),
        (("nothing", 3, "here"), 1),
    ],
)
def test_a_path_has_its_line(path: Path, line: int) -> None:
    assert Lines(TEXT).of(path) == line


@dataclass
class Writer:
    """Writes TOML in every style there is, and remembers where it wrote what."""

    draw: st.DrawFn
    text: str = ""
    lines: dict[Path, int] = field(default_factory=dict)

    def note(self, path: Path) -> None:
        self.lines.setdefault(path, self.text.count("\n") + 1)

    def either(self, *texts: str) -> None:
        self.text += self.draw(st.sampled_from(texts))

    def gap(self) -> None:
        self.either("", " ", "\n", ' # ,]}"\n', "\n\n\t")

    def key(self, key: str) -> None:
        self.either(key, f'"{key}"', f"'{key}'")

    def scalar(self) -> None:
        self.either("1", "-2.5", "true", "1979-05-27", "'#]}'", '"a\\"]"', '"""\n"\\"""}"""',
                    "'''\n]'''", '""', "''", '""""a"""""')  # fmt: skip

    def value(self, path: Path, depth: int) -> None:
        self.note(path)
        kind = self.draw(st.sampled_from(["scalar", "array", "table"])) if depth else "scalar"
        if kind == "scalar":
            self.scalar()
        elif kind == "array":
            self.array(path, depth)
        else:
            self.inline(path, depth)

    def array(self, path: Path, depth: int) -> None:
        self.text += "["
        for number in range(self.draw(st.integers(0, 3))):
            self.gap()
            self.value((*path, number), depth - 1)
            self.gap()
            self.text += ","
        self.gap()
        self.text += "]"

    def inline(self, path: Path, depth: int) -> None:
        self.text += "{ "
        keys = self.draw(st.lists(st.sampled_from("pqr"), unique=True))
        for number, key in enumerate(keys):
            self.text += ", " if number else ""
            self.pair((*path,), key, depth - 1)
        self.text += " }"

    def pair(self, path: Path, key: str, depth: int) -> None:
        parts = [key, *self.draw(st.lists(st.sampled_from("xy"), max_size=2))]
        for number, part in enumerate(parts):
            path = (*path, part)
            self.note(path)
            self.either("", " ") if number else None
            self.key(part)
            self.either("", " ")
            self.text += "." if number < len(parts) - 1 else ""
        self.either("=", " = ")
        self.value(path, depth)

    def body(self, path: Path) -> None:
        for key in self.draw(st.lists(st.sampled_from("abc"), unique=True)):
            self.either("", "  ", "# x = [\n")
            self.pair(path, key, 2)
            self.either("\n", "  # end\n", "\n\n")

    def file(self) -> None:
        self.body(())
        for name in ("t", "u"):
            for number in range(self.draw(st.integers(0, 2))):
                self.note((name,))
                self.note((name, number))
                self.either(f"[[{name}]]\n", f"[[ '{name}' ]] # x\n")
                self.body((name, number))
                if self.draw(st.booleans()):
                    self.note((name, number, "sub"))
                    self.text += f"[{name}.sub]\n"
                    self.body((name, number, "sub"))


@st.composite
def texts(draw: st.DrawFn) -> Writer:
    writer = Writer(draw)
    writer.file()
    return writer


@given(texts())
def test_every_value_is_found_where_it_was_written(written: Writer) -> None:
    tomllib.loads(written.text)
    lines = Lines(written.text)
    for path, line in written.lines.items():
        assert lines.of(path) == line, (path, written.text)
