"""The body of a form as fields."""

from urllib.parse import parse_qs

from fairwarning.control.problems import Problem

Fields = dict[str, list[str]]
FIELDS_MAX = 2_000


def read_form(raw: bytes, content_type: str) -> Fields:
    """Raises Problem."""
    if content_type.partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise Problem(415, "media-type-unknown", "a page sends forms; programs use /api/v1")
    try:
        return parse_qs(
            raw.decode(), keep_blank_values=True, strict_parsing=False,
            max_num_fields=FIELDS_MAX, errors="strict",
        )  # fmt: skip
    except ValueError as problem:
        raise Problem(400, "form-malformed", f"the form cannot be read ({problem})") from None
