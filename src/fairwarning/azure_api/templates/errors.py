"""Defines the errors of templates, in Azure's words."""

from fairwarning.azure_api.errors import ArmError


class TemplateError(Exception):
    """An expression or a value is not valid. A caller that knows its place makes an ArmError."""


def invalid(why: str) -> ArmError:
    """Returns the refusal of a template."""
    return ArmError(400, "InvalidTemplate", f"Deployment template validation failed: '{why}'.")


def invalid_member(name: str, place: str, error: TemplateError) -> ArmError:
    """Returns the refusal of a property. `name` is a resource, parameter, variable or output."""
    where = f" at '{place}'" if place else ""
    return invalid(f"The template resource '{shorten(name)}'{where} is not valid: {error}")


def shorten(text: str) -> str:
    """Cuts a text that is too long for a message."""
    return text if len(text) <= 100 else f"{text[:100]}…"
