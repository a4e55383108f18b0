"""Finds the samples in the seed documents, byte for byte as printed.

The seeds are translated Markdown pages. A sample is
- a fenced block: from a line of three backquotes and perhaps a language to the next line that
  begins with three backquotes; or
- an indented block: after a blank line, lines that begin with four spaces, which are taken off,
  and blank lines between them; or
- the address of the endpoint, alone and quoted, in a block quote.

What a block is follows from its language, or where there is none from its first word or the
property that it names. A line that begins with `curl` is a sample by itself. The C# blocks of
a page are one program, in the order of the page. Nothing is left out: what cannot be run here
becomes a sample too, with the reason.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Kind(StrEnum):
    CURL = "curl"
    ENDPOINT = "endpoint"
    """Only the address is printed."""
    BODY = "body"
    """Only the body of an approval is printed, with a placeholder for the id."""
    DOCUMENT = "document"
    """The shape of an answer, with placeholders for values."""
    PYTHON = "python"
    CSHARP = "c#"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    kind: Kind
    seed: str
    line: int
    source: bytes
    endpoint: str
    """The address that the page gives."""
    obstacle: str = ""
    """Why a foreign sample cannot be run here."""

    @property
    def place(self) -> str:
        return f"{self.seed}:{self.line}"


@dataclass(frozen=True, slots=True)
class _Block:
    line: int
    language: str
    source: bytes


_FENCE = re.compile(rb"```[ \t]*([\w-]*)")
_INDENT = b"    "
_ENDPOINT = re.compile(rb"http://169\.254\.169\.254/metadata/\w+\?api-version=[\d-]+")
_QUOTED_ENDPOINT = re.compile(rb">\s*'(http://169\.254\.169\.254/[^']+)'\s*")
_OBSTACLES = {
    "powershell": "PowerShell is not to be had from Debian",
    "azurepowershell-interactive": "needs Azure PowerShell and a subscription",
    "azurecli-interactive": "needs the Azure CLI and a subscription",
    "json": "a request to Azure Resource Manager, not to the endpoint",
}
_KINDS = {"python": Kind.PYTHON, "csharp": Kind.CSHARP}


def samples_of(folder: Path) -> list[Sample]:
    pages = sorted(folder.glob("*.txt"))
    return [sample for page in pages for sample in _of_page(page.name[:3], page.read_bytes())]


def _of_page(seed: str, page: bytes) -> Iterator[Sample]:
    named = _ENDPOINT.search(page)
    endpoint = named[0].decode() if named else ""
    blocks = list(_blocks(page))
    program = [block for block in blocks if block.language == "csharp"]
    if program:
        merged = _Block(program[0].line, "csharp", b"\n".join(each.source for each in program))
        blocks = [each for each in blocks if each not in program] + [merged]
    for block in sorted(blocks, key=lambda each: each.line):
        for kind, line, source in _split(block):
            yield Sample(
                kind=kind,
                seed=seed,
                line=line,
                source=source,
                endpoint=endpoint,
                obstacle=_obstacle(block) if kind is Kind.FOREIGN else "",
            )


def _split(block: _Block) -> Iterator[tuple[Kind, int, bytes]]:
    lines = block.source.splitlines()
    curls = [(n, line) for n, line in enumerate(lines, block.line) if line.startswith(b"curl ")]
    if curls:
        yield from ((Kind.CURL, number, line) for number, line in curls)
    else:
        yield _kind(block), block.line, block.source


def _kind(block: _Block) -> Kind:
    if block.language:
        return _KINDS.get(block.language, Kind.FOREIGN)
    if _ENDPOINT.fullmatch(block.source):
        return Kind.ENDPOINT
    if b'"StartRequests"' in block.source:
        return Kind.BODY
    return Kind.DOCUMENT if b'"Events"' in block.source else Kind.FOREIGN


def _obstacle(block: _Block) -> str:
    return _OBSTACLES.get(block.language or "json", f"no way is known to run {block.language!r}")


def _blocks(page: bytes) -> Iterator[_Block]:
    lines = page.splitlines(keepends=True)
    number = 0
    while number < len(lines):
        if fence := _FENCE.match(lines[number]):
            end = _end_of_fence(lines, number + 1)
            language = fence[1].decode().lower()
            yield _Block(number + 2, language, b"".join(lines[number + 1 : end]))
            number = end + 1
        elif lines[number].startswith(_INDENT) and _is_blank(lines, number - 1):
            end = _end_of_indent(lines, number)
            taken = (line.removeprefix(_INDENT) for line in lines[number:end])
            yield _Block(number + 1, "", b"".join(taken))
            number = end
        else:
            if quoted := _QUOTED_ENDPOINT.fullmatch(lines[number]):
                yield _Block(number + 1, "", quoted[1])
            number += 1


def _end_of_fence(lines: list[bytes], start: int) -> int:
    for number in range(start, len(lines)):
        if _FENCE.match(lines[number]):
            return number
    return len(lines)


def _end_of_indent(lines: list[bytes], start: int) -> int:
    end = start
    for number in range(start, len(lines)):
        if lines[number].startswith(_INDENT):
            end = number + 1
        elif not _is_blank(lines, number):
            break
    return end


def _is_blank(lines: list[bytes], number: int) -> bool:
    return number < 0 or not lines[number].strip()
