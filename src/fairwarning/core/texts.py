"""Free text from outside: whatever it says, it must be possible to store and to send."""

from fairwarning.core.refusals import Code, Refused


def refuse_text(what: str, text: str) -> None:
    """Half of a surrogate pair, which JSON can smuggle in, is no text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused(
            Code.TEXT_INVALID,
            f"the {what} holds a character that is none (a lone surrogate); take it out",
        ) from None
