"""The types of the API's JSON. They are used to check requests and to describe the API."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from fairwarning.common.durations import DURATION_PATTERN
from fairwarning.core.hooks import OnFailure
from fairwarning.core.model import (
    EventType,
    EvictionPolicy,
    OperationKind,
    Phase,
    Priority,
    Protection,
    ScopeKind,
    Source,
    StartCause,
)
from fairwarning.core.resources import Orchestration

END = r"$(?!\n)"
"""A pattern for the very end of a text. In Python `$` alone also matches before a newline."""
DurationText = Annotated[
    str,
    Meta(pattern=DURATION_PATTERN, description="`30s`, `15m`, `1h30m`, `1d` or ISO 8601"),
]
InstantText = Annotated[
    str, Meta(max_length=64, description="RFC 3339", extra_json_schema={"format": "date-time"})
]
Limit = Annotated[int, Meta(ge=1, le=500, description="How many at most")]
After = Annotated[str, Meta(max_length=200, description="`next` of the page before")]
Name = Annotated[str, Meta(min_length=1, max_length=400)]
Text = Annotated[str, Meta(max_length=1024)]


class In(Struct, rename="camel", forbid_unknown_fields=True):
    """The base class of bodies and queries of requests. Unknown names are refused, because they may
    be mistakes.
    """


class Out(Struct, rename="camel"):
    """The base class of the bodies of answers."""


class NoQuery(In):
    pass


class Entry(Out):
    position: str
    at: str
    scope: str
    event: str | None
    kind: str
    by: str
    why: str
    text: str
    data: dict[str, Any]


class Entries(Out):
    entries: list[Entry]
    next: str | None


class Approval(Out):
    by: str
    at: str


class Sight(Out):
    """Which instance was the first to be shown an event, and when."""

    by: str
    at: str


class Event(Out):
    id: str
    scope: str
    type: EventType
    phase: Phase
    source: Source
    resources: list[str]
    update_domain: int
    not_before: str
    description: str
    duration_seconds: int
    created: str
    started: str | None
    ended: str | None
    outcome: str
    start_cause: StartCause | None
    operation: OperationKind | None
    announced: bool
    replaced_by: str | None
    approvals: list[Approval]
    seen: Sight | None
    drained: list[str]
    timeline: list[Entry] = []
    waits_for: list[str] = []
    """The events that block this event, or would block it if it were approved now."""
    waits: str | None = None
    """What a scheduled event waits for, in words. Lists leave it out."""


class Events(Out):
    events: list[Event]
    next: str | None


class EventDocument(Out):
    """The document that an instance gets with this api-version."""

    api_version: str
    shown: bool
    """False if the version does not know the type, or the event is over or unannounced."""
    body: str


class EventDocuments(Out):
    documents: list[EventDocument]


class EventCount(Out):
    type: EventType
    phase: Phase
    count: int


class EventCounts(Out):
    counts: list[EventCount]


class Pending(Out):
    id: str
    type: EventType
    phase: Phase
    not_before: str


class Polling(Out):
    """How an instance polls its document."""

    count: int
    per_minute: float
    last: str
    agent: str


class Instance(Out):
    name: str
    update_domain: int
    fault_domain: int
    addresses: list[str]
    tags: dict[str, str]
    priority: Priority
    eviction: EvictionPolicy
    power: str
    terminate_notice: str | None
    reimage_notice: str | None
    latest_model_applied: bool
    protected_from: list[Protection]
    pending: list[Pending]
    """The events that name this instance and are not over."""
    polling: Polling | None
    """What this node has seen; null if the instance has not polled it since its start."""


class InstanceDetail(Instance):
    scope: str
    events: list[Event]


class Model(Out):
    generation: int
    terminate_notice: str | None
    reimage_notice: str | None


class Policy(Out):
    approve_user_reboot: bool
    approve_user_redeploy: bool
    approve_all_instances_down: bool
    notice: dict[str, str]


class Hook(Out):
    name: str
    program: str | None
    """The program, without its arguments, which may contain secrets."""
    url: str | None
    """The address, without its path and password."""
    timeout: str
    retries: int
    pause: str
    on_failure: OnFailure | None
    """What a failure means. It is null for a hook after the impact."""


class Hooks(Out):
    before: list[Hook]
    after: list[Hook]


class Scope(Out):
    id: str
    kind: ScopeKind
    name: str
    subscription: str
    resource_group: str
    location: str
    test: bool
    driver: str
    hooks: Hooks
    origin: str
    update_domains: int
    fault_domains: int
    activated: bool
    incarnation: int
    last_seen: str | None
    terminate_notice: str | None
    orchestration: Orchestration | None
    capacity: int
    model: Model
    policy: Policy
    pending_events: int
    instances: list[Instance]


class Fleet(Out):
    scopes: list[Scope]
    next: str | None


class Me(Out):
    name: str
    role: str


class ClockState(Out):
    now: str
    virtual: bool
    speed: float
    """The speed of the clock: 1 for the real clock, 0 for a clock that only moves on request."""


class Advance(In):
    by: DurationText


class ScheduleBody(In):
    type: Literal["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"]
    targets: Annotated[list[Name], Meta(max_length=100)] = []
    scope: Name | None = None
    update_domain: Annotated[int, Meta(ge=0, le=19)] | None = None
    notice: DurationText | None = None
    not_before: InstantText | None = None
    duration: DurationText | None = None
    lasts: DurationText | None = None
    description: str | None = None
    id: Annotated[str, Meta(max_length=64)] | None = None
    already_happened: bool = False


class EventsQuery(In):
    phase: list[Phase] = []
    type: list[EventType] = []
    source: list[Source] = []
    scope: Name | None = None
    instance: Name | None = None
    after: After | None = None
    limit: Limit = 50


class CancelBody(In):
    reason: Text = ""


class PostponeBody(In):
    not_before: InstantText | None = None
    notice: DurationText | None = None


class FleetQuery(In):
    search: Annotated[str, Meta(max_length=200)] = ""
    after: After | None = None
    limit: Limit = 100


Confirm = Annotated[str, Meta(max_length=64, description="`confirm` of the preview")]


class PlanQuery(In):
    without_notice: bool = False


class RemoveQuery(In):
    force: bool = False
    """Whether to cancel the pending events of removed instances."""
    without_notice: bool = False
    """Remove at once instances that would get a Terminate event; only for admins, with `why`."""
    confirm: Confirm = ""


class RemoveResourceQuery(RemoveQuery):
    preview: bool = False
    """Whether only to say what would be removed."""


class DeclareQuery(RemoveQuery):
    create: bool = False
    """Whether to refuse a resource that exists, instead of changing it."""


class FleetChange(Out):
    action: str
    what: str
    scope: str
    detail: str
    events: list[str]
    terminate_notice: str | None
    """The notice of the Terminate event by which the instance leaves."""
    without_notice: bool


class FleetPlan(Out):
    changes: list[FleetChange]
    kept: list[str]
    confirm: str | None
    """The code that confirms which instances leave without notice; null if none do."""
    warnings: list[str] = []
    """What is allowed and may surprise, such as a name that two sets share."""
    terminates: list[str] = []
    """The ids of the Terminate events that this change has created."""


class FleetLine(Out, omit_defaults=True):
    """A line of the answer to a streamed fleet. A member that is left out is empty or 0."""

    step: Literal["plan", "changes", "progress", "done", "problem"]
    scopes: int = 0
    """How many scopes change."""
    done: int = 0
    """How many of them are done."""
    kept: list[str] = []
    confirm: str | None = None
    warnings: list[str] = []
    changes: list[FleetChange] = []
    terminates: list[str] = []
    problem: dict[str, Any] | None = None
    """Why it ends before all scopes are done, as in an ordinary error answer."""


class PageQuery(In):
    after: After | None = None
    limit: Limit = 50


class HistoryQuery(In):
    scope: Name | None = None
    event: Annotated[str, Meta(max_length=64)] | None = None
    after: After | None = None
    limit: Limit = 50


class TokenBody(In):
    name: Annotated[str, Meta(min_length=1, max_length=64, pattern=rf"^[A-Za-z0-9._@-]+{END}")]
    role: Annotated[str, Meta(pattern=rf"^(viewer|approver|operator|admin){END}")]
    expires: Annotated[str, Meta(max_length=64)] | None = None


class TokenOut(Out):
    id: str
    name: str
    role: str
    created: str
    created_by: str
    expires: str | None
    last_used: str | None


class TokenWithSecret(TokenOut):
    secret: str


class Tokens(Out):
    tokens: list[TokenOut]
    next: str | None


class AzureOut(Out):
    url: str | None
    ca: str | None
    tenant: str
    subscription: str


class Done(Out):
    done: bool = True


class FileMistake(Out):
    """A mistake in a fleet file. In TOML it has a line, counted from 1."""

    detail: str
    line: int | None = None
    pointer: str | None = None


class ProblemBody(Out):
    """An error, as RFC 9457 describes it. Only `fleet-invalid` has `problems`."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    problems: list[FileMistake] | None = None
