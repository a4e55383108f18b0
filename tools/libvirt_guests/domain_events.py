"""Counts what libvirt reports of domains: started, suspended, resumed, stopped, restarted."""

import threading
from collections import Counter
from typing import Any

import libvirt

_KINDS = {
    (libvirt.VIR_DOMAIN_EVENT_STARTED, libvirt.VIR_DOMAIN_EVENT_STARTED_BOOTED): "started",
    (libvirt.VIR_DOMAIN_EVENT_SUSPENDED, libvirt.VIR_DOMAIN_EVENT_SUSPENDED_PAUSED): "suspended",
    (libvirt.VIR_DOMAIN_EVENT_RESUMED, libvirt.VIR_DOMAIN_EVENT_RESUMED_UNPAUSED): "resumed",
    (libvirt.VIR_DOMAIN_EVENT_RESUMED, libvirt.VIR_DOMAIN_EVENT_RESUMED_MIGRATED): "moved",
    (libvirt.VIR_DOMAIN_EVENT_UNDEFINED, libvirt.VIR_DOMAIN_EVENT_UNDEFINED_REMOVED): "deleted",
}


class DomainEvents:
    """All reports of several libvirtds since it was made. Make it before the first connection."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, str]] = Counter()
        libvirt.virEventRegisterDefaultImpl()
        threading.Thread(target=_run, daemon=True).start()

    def follow(self, connection: Any) -> None:
        connection.domainEventRegisterAny(
            None, libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, self._note, None
        )
        connection.domainEventRegisterAny(
            None, libvirt.VIR_DOMAIN_EVENT_ID_REBOOT, self._note_restart, None
        )

    def seen(self, name: str, kind: str) -> int:
        return self._seen[name, kind]

    def _note(self, _: Any, domain: Any, event: int, detail: int, __: Any) -> None:
        if event == libvirt.VIR_DOMAIN_EVENT_STOPPED:
            self._seen[domain.name(), "stopped"] += 1
        elif kind := _KINDS.get((event, detail)):
            self._seen[domain.name(), kind] += 1

    def _note_restart(self, _: Any, domain: Any, __: Any) -> None:
        self._seen[domain.name(), "restarted"] += 1


def _run() -> None:
    while True:
        libvirt.virEventRunDefaultImpl()
