"""The settings of the driver `libvirt`."""

from collections.abc import Mapping
from importlib.util import find_spec

from msgspec import Struct

from fairwarning.common.durations import parse_duration_ms
from fairwarning.core.driver_settings import DriverSettings, Setting, SettingKind
from fairwarning.drivers.libvirt.host import Ask
from fairwarning.engine.protocols import DriverFailed

RESTART = "restart"
"""The last way to restart a guest: stop the domain and start it."""
NOT_INSTALLED = "libvirt-python is not installed; run pip install 'fairwarning[libvirt]'"
WAYS = (*Ask, RESTART)
_URI = r"[a-z0-9]+(\+[a-z0-9]+)?://\S*"
_DURATIONS = {
    "agent_time": "10s",
    "acpi_time": "60s",
    "reset_time": "30s",
    "boot_time": "5m",
    "stop_time": "60s",
    "call_time": "20s",
}
SETTINGS = DriverSettings(
    driver="libvirt",
    settings=(
        Setting(name="uri", pattern=_URI, example="qemu:///system", is_required=True),
        Setting(name="other_uri", pattern=_URI, example="qemu+ssh://host-2/system"),
        Setting(name="base", pattern="[^/]+/[^/]+", example="images/debian-12.qcow2"),
        Setting(name="root", pattern=r"\S+", example="vda"),
        Setting(name="volatile", pattern=r"\S+( \S+)*", example="vdb vdc"),
        Setting(
            name="restart_by",
            pattern=rf"({'|'.join(WAYS)})( ({'|'.join(WAYS)}))*",
            example="agent acpi reset",
        ),
        *(Setting(name=name, kind=SettingKind.DURATION) for name in _DURATIONS),
    ),
    unusable="" if find_spec("libvirt") else NOT_INSTALLED,
)


class Settings(Struct, frozen=True, kw_only=True):
    uri: str
    other_uri: str = ""
    base: str = ""
    root: str = ""
    volatile: tuple[str, ...] = ()
    restart_by: tuple[str, ...] = tuple(Ask)
    seconds: Mapping[str, float]
    """The times, by the name of their setting."""

    def ask_s(self, how: Ask) -> float:
        return self.seconds[f"{how.value}_time"]


def parse(given: Mapping[str, str]) -> Settings:
    """Raises DriverFailed if the settings are wrong."""
    problem = SETTINGS.problem(given)
    if problem is not None:
        raise DriverFailed(f"{problem}; change the fleet")
    seconds = {
        name: (parse_duration_ms(given.get(name, default)) or 0) / 1000
        for name, default in _DURATIONS.items()
    }
    return Settings(
        uri=given["uri"],
        other_uri=given.get("other_uri", ""),
        base=given.get("base", ""),
        root=given.get("root", ""),
        volatile=tuple(given.get("volatile", "").split()),
        restart_by=tuple(given.get("restart_by", " ".join(Ask)).split()),
        seconds=seconds,
    )
