"""Defines the errors of templates, with Azure's messages."""

from fairwarning.azure_api.errors import ArmError


class TemplateError(Exception):
    """An expression or a value is not valid.

    A caller that knows the place in the template turns this into an ArmError.
    """


def invalid(why: str) -> ArmError:
    """Returns the error for a template that is not valid."""
    return ArmError(400, "InvalidTemplate", f"Deployment template validation failed: '{why}'.")


def invalid_member(name: str, place: str, error: TemplateError) -> ArmError:
    """Returns the error for a property that is not valid.

    `name` is the name of the resource, parameter, variable or output. `place` is the path of the
    property in it.
    """
    where = f" at '{place}'" if place else ""
    return invalid(f"The template resource '{shorten(name)}'{where} is not valid: {error}")


def shorten(text: str) -> str:
    """Returns the text, cut if it is too long for a message."""
    return text if len(text) <= 100 else f"{text[:100]}…"
