"""The words of a chat message: `$name` is replaced, `$$` is a dollar. Pure."""

import string

from fairwarning.notices.model import Template, Words

NAMES = (
    "kind",
    "text",
    "scope",
    "by",
    "why",
    "at",
    "event",
    "type",
    "phase",
    "source",
    "resources",
    "update_domain",
    "not_before",
    "duration",
    "description",
    "outcome",
)
TEMPLATE_CHARS_MAX = 4_000
TITLE_CHARS_MAX = 250
TEXT_CHARS_MAX = 16_000


def template_problem(template: Template) -> str | None:
    """What is wrong with it and what to do, or None."""
    for part, text in (("title", template.title), ("body", template.body)):
        if len(text) > TEMPLATE_CHARS_MAX:
            return f"the template's {part} has {len(text)} characters; use {TEMPLATE_CHARS_MAX}"
        parsed = string.Template(text)
        if not parsed.is_valid():
            return f"the template's {part} has a $ without a name; write $$ for a dollar"
        unknown = [each for each in parsed.get_identifiers() if each not in NAMES]
        if unknown:
            return f"the template's {part} has ${unknown[0][:50]}; use {_all_names()}"
    if not template.body.strip():
        return "the template's body is empty; put at least $text into it"
    return None


def fill(template: Template, words: Words) -> tuple[str, str]:
    """Title and text. A title is one line, whatever a description brings in."""
    known = dict.fromkeys(NAMES, "") | dict(words)
    title = " ".join(string.Template(template.title).substitute(known).split())
    text = string.Template(template.body).substitute(known)
    return title[:TITLE_CHARS_MAX], text[:TEXT_CHARS_MAX]


def _all_names() -> str:
    return ", ".join(f"${name}" for name in NAMES)
