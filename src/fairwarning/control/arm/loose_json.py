"""JSON as people write templates, and as `az deployment` sends them. Pure.

It puts the text of the file into its request as it is: with comments, with strings over several
lines and commas at the end, behind a key without quotes.
"""

import re

# Everything matches up to the end of the text, so that no text is looked at twice. No possessive
# quantifiers: Python 3.11.2, which Debian 12 has, reads nested ones wrongly.
_STRING = r'"(?:[^"\\]|\\.?)*(?:"|\Z)'
_COMMENT = r"//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z)"
_NAME = r"(?P<name>[A-Za-z_$][\w$]*)(?P<colon>\s*:)?"
_PARTS = re.compile(rf"(?P<string>{_STRING})|(?P<comment>{_COMMENT})|{_NAME}", re.DOTALL)
_COMMAS = re.compile(rf"{_STRING}|(?P<comma>,)(?=\s*[}}\]])", re.DOTALL)
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LINES = re.compile(r"[\n\r\t]")


def strict_json(text: str) -> str:
    """The same as JSON; what is no JSON for other reasons stays as wrong as it is."""
    return _COMMAS.sub(lambda found: "" if found["comma"] else found[0], _PARTS.sub(_part, text))


def _part(found: re.Match[str]) -> str:
    if found["string"] is not None:
        return _LINES.sub(lambda each: _ESCAPES[each[0]], found[0])
    if found["comment"] is not None:
        return " "
    return found[0] if found["colon"] is None else f'"{found["name"]}":'
