"""The stories that come with the program, one TOML file each."""

from importlib.resources import files

_ORDER = (
    "user-reboot",
    "live-migration",
    "host-update",
    "degraded-hardware",
    "hardware-failure",
    "cancelled-maintenance",
    "redeploy",
    "spot-eviction",
    "scale-in",
    "host-os-rollout",
    "back-to-back",
    "neighbour",
)


def names() -> tuple[str, ...]:
    """From the everyday to the unusual."""
    return _ORDER


def text(name: str) -> str:
    """As it is in the file."""
    return files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
