"""What is wrong with a template, and where."""

from fairwarning.azure_api.errors import ArmError


class Fault(Exception):
    """An expression or a value makes no sense; whoever knows its place makes an ArmError of it."""


def invalid(why: str) -> ArmError:
    """Azure's words around what is wrong."""
    return ArmError(400, "InvalidTemplate", f"Deployment template validation failed: '{why}'.")


def invalid_at(name: str, place: str, fault: Fault) -> ArmError:
    """`name` is a resource, a parameter, a variable or an output; `place` its property."""
    where = f" at '{place}'" if place else ""
    return invalid(f"The template resource '{shown(name)}'{where} is not valid: {fault}")


def shown(text: str) -> str:
    """Short enough for a message."""
    return text if len(text) <= 100 else f"{text[:100]}…"
