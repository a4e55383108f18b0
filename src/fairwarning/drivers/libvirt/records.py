"""What is remembered of a key in the metadata of a domain, and the rules of attempts.

Each key has an element of its own, in an XML namespace of its own. So two keys never overwrite each
other, although libvirt cannot compare and set.
"""

from enum import StrEnum
from xml.etree import ElementTree as ET

from msgspec import Struct
from msgspec.structs import replace

from fairwarning.core.instants import Instant
from fairwarning.engine.protocols import DriverFailed

NAMESPACE = "https://fairwarning.invalid/libvirt/impact/"
"""The namespace of a key is this and the key."""
KEPT_MAX = 16
"""A domain remembers this many keys. The oldest that are done are removed first."""


class Step(StrEnum):
    SEEN = "seen"
    """A node has asked about the key. Nothing was begun."""
    BEGUN = "begun"
    """A node was about to act. It may have acted."""
    ACTED = "acted"
    """The domain is frozen, or was asked to restart."""
    DONE = "done"


class Record(Struct, frozen=True, kw_only=True):
    key: str
    attempt: int
    """The highest attempt that was seen."""
    step: Step = Step.SEEN
    at_ms: int = 0
    """When the record was made. It orders the records of a domain."""
    until_ms: int = 0
    """When a frozen domain goes on. 0 if that is not known yet."""
    run_id: int = -1
    """libvirt's number of the domain's run before the impact. A restart gives it another one."""
    boot_id: str = ""
    """The guest's own boot id before the impact. It is empty if no guest agent answered."""
    asked: str = ""
    """How the guest was asked to restart: `agent`, `acpi` or `reset`."""


def to_xml(record: Record) -> str:
    element = ET.Element("impact")
    for name in record.__struct_fields__:
        element.set(name, str(getattr(record, name)))
    return ET.tostring(element, encoding="unicode")


def from_element(element: ET.Element) -> Record | None:
    """Return the record of an element of a domain's metadata, or None if it is not one of ours."""
    if not element.tag.startswith(f"{{{NAMESPACE}"):
        return None
    found = element.attrib
    try:
        return Record(
            key=found["key"],
            attempt=int(found["attempt"]),
            step=Step(found["step"]),
            at_ms=int(found["at_ms"]),
            until_ms=int(found["until_ms"]),
            run_id=int(found["run_id"]),
            boot_id=found["boot_id"],
            asked=found["asked"],
        )
    except (KeyError, ValueError):
        key = element.tag.removeprefix(f"{{{NAMESPACE}").partition("}")[0]
        raise DriverFailed(
            f"the domain's metadata of {key} was changed; look what became of the impact, and "
            "remove it with virsh metadata --remove"
        ) from None


def seen(record: Record | None, key: str, attempt: int, now_ms: Instant) -> Record:
    """Return the record after a node has asked about the key with this attempt."""
    if record is None:
        return Record(key=key, attempt=attempt, at_ms=now_ms)
    return replace(record, attempt=max(record.attempt, attempt))


def refuse_lower(record: Record | None, attempt: int) -> None:
    """Raises DriverFailed if a higher attempt was seen already."""
    if record is not None and record.attempt > attempt:
        raise DriverFailed(
            f"attempt {record.attempt} was seen already, so attempt {attempt} is too late"
        )


def superfluous(records: dict[str, Record], key: str) -> list[str]:
    """Return the keys whose records can be removed before the record of `key` is written."""
    done = [each for each in records.values() if each.step is Step.DONE and each.key != key]
    done.sort(key=lambda each: each.at_ms)
    return [each.key for each in done[: max(0, len(records) + 1 - KEPT_MAX)]]
