"""The sentences that Azure puts into Description, word for word where one is known."""

from collections.abc import Mapping

from fairwarning.core.model import EventType, OperationKind

PLATFORM: Mapping[EventType, str] = {
    EventType.FREEZE: "Host server is undergoing maintenance.",
    EventType.REBOOT: "Host server is undergoing maintenance.",
    EventType.REDEPLOY: "Host server is undergoing maintenance.",
    EventType.PREEMPT: "",
    EventType.TERMINATE: "",
}
ALREADY_HAPPENED = "Virtual machine has encountered a failure."
USER: Mapping[OperationKind, str] = {
    OperationKind.RESTART: (
        "Virtual machine is going to be restarted as requested by authorized user."
    ),
    OperationKind.REDEPLOY: (
        "Virtual machine is going to be redeployed as requested by authorized user."
    ),
    OperationKind.REIMAGE: (
        "Virtual machine is going to be reimaged as requested by authorized user."
    ),
    OperationKind.DELETE: "",
    OperationKind.EVICT: "",
    OperationKind.START: "",
    OperationKind.STOP: "",
    OperationKind.DEALLOCATE: "",
}
PLATFORM_DURATION_S: Mapping[EventType, int] = {EventType.FREEZE: 5}
"""The usual pause of a memory-preserving update; other types do not say how long they take."""
