"""The scenarios that come with the program. Each is a TOML file in this folder."""

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
    """Return the names of all scenarios, the common ones first."""
    return _ORDER


def text(name: str) -> str:
    """Return the TOML text of a scenario."""
    return files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
