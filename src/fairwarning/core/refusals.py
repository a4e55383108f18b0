"""This module lists the codes of all refusals.

A refusal is an answer, not an error in the program. It has a stable code and a sentence that says
what to do. `docs/refusals.md` has a section for each code, which a test checks.
"""

from enum import StrEnum


class Code(StrEnum):
    ADDRESS_IN_USE = "address-in-use"
    ADDRESS_INVALID = "address-invalid"
    ALREADY_PENDING = "already-pending"
    DESCRIPTION_TOO_LONG = "description-too-long"
    DURATION_INVALID = "duration-invalid"
    EVENT_FINISHED = "event-finished"
    EVENT_ID_INVALID = "event-id-invalid"
    EVENT_ID_USED = "event-id-used"
    EVENT_STARTED = "event-started"
    FLEET_INVALID = "fleet-invalid"
    INSTANCE_DELETED = "instance-deleted"
    INSTANCE_EXISTS = "instance-exists"
    INSTANCE_HAS_EVENT = "instance-has-event"
    INSTANCE_HAS_NOTICE = "instance-has-notice"
    INSTANCE_PROTECTED = "instance-protected"
    NAME_INVALID = "name-invalid"
    NOT_A_SCALE_SET = "not-a-scale-set"
    NOT_BEFORE_TOO_FAR = "not-before-too-far"
    NOT_IN_SCOPE = "not-in-scope"
    NOT_POSTPONABLE = "not-postponable"
    NOT_SCHEDULABLE = "not-schedulable"
    NOT_SPOT = "not-spot"
    NOTIFICATION_INVALID = "notification-invalid"
    NOTICE_TOO_SHORT = "notice-too-short"
    NOTICE_NOT_LOWERABLE = "notice-not-lowerable"
    NO_TARGET = "no-target"
    REIMAGE_NOTICE_INVALID = "reimage-notice-invalid"
    ROSTER_CHANGED = "roster-changed"
    ROLLOUT_FINISHED = "rollout-finished"
    ROLLOUT_INVALID = "rollout-invalid"
    SCOPE_EXISTS = "scope-exists"
    SCOPE_FULL = "scope-full"
    SPANS_UPDATE_DOMAINS = "spans-update-domains"
    TERMINATE_BY_DELETE_ONLY = "terminate-by-delete-only"
    TERMINATE_NOTICE_INVALID = "terminate-notice-invalid"
    TERMINATE_NOT_FOR_SPOT = "terminate-not-for-spot"
    TEXT_INVALID = "text-invalid"
    TOO_MANY_EVENTS = "too-many-events"
    TOO_MANY_OPERATIONS = "too-many-operations"
    UNKNOWN_EVENT = "unknown-event"
    UNKNOWN_INSTANCE = "unknown-instance"
    UNKNOWN_NOTIFICATION = "unknown-notification"
    UNKNOWN_ROLLOUT = "unknown-rollout"
    UNKNOWN_SCOPE = "unknown-scope"


class Refused(Exception):
    """The rules do not allow what was asked for. Nothing has changed."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
