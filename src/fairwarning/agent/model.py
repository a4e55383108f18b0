"""The agent's config as values; `config/` reads them from the file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum

from fairwarning.common.url_redaction import redacted


class Phase(StrEnum):
    """The phase of an event, which is also the rule's list whose actions run then."""

    SCHEDULED = "scheduled"
    STARTED = "started"
    FINISHED = "finished"
    CANCELLED = "cancelled"


class OnFailure(StrEnum):
    STOP = "stop"
    """Leave out the rest of the list, and do not approve the event."""
    CONTINUE = "continue"


class When(StrEnum):
    SUCCESS = "success"
    NEVER = "never"
    ALWAYS = "always"


class Shared(StrEnum):
    """Which VM approves an event of several VMs."""

    LEADER = "leader"
    """The first VM in Resources, as soon as it is ready itself."""
    ALL = "all"
    """Any VM that sees that all of them are ready."""


class Concerns(StrEnum):
    ME = "me"
    OTHERS = "others"
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Runs a command, which gets the event as JSON on standard input and in its environment."""

    command: tuple[str, ...]
    """Templates are filled in, unless `is_shell`."""
    is_shell: bool = False
    """`command` is `/bin/sh -c TEXT`. Templates are refused in it: what an event says must
    never be read as shell; the environment has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Http:
    """Sends an HTTP request; any status from 200 to 299 is success."""

    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubernetes:
    """Cordons a node and drains it unless `drain` is false; undone by uncordon."""

    node: str = "{me}"
    drain: bool = True
    kubectl: str = "kubectl"
    kubeconfig: str = ""
    context: str = ""
    grace_period_s: int | None = None
    """None: the grace period of each pod."""
    ignore_daemonsets: bool = True
    delete_emptydir_data: bool = False
    force: bool = False
    """Evict also pods that no controller would start elsewhere."""
    pod_selector: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Systemd:
    """Stops units in this order; undone by starting in the opposite one those that ran."""

    stop: tuple[str, ...]
    user: bool = False
    """Whether the units belong to the user's own manager."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HaProxy:
    """Takes a server out through the runtime socket; undone by `ready`."""

    socket: str
    """A path, or HOST:PORT."""
    server: str
    """`backend/name`."""
    state: str = "drain"
    """`drain` lets sessions end, `maint` ends them."""
    wait: bool = True
    """Whether to wait until no session is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nginx:
    """Marks a server of an upstream as down in a file and reloads; undone the same way."""

    file: str
    upstream: str
    server: str
    reload: tuple[str, ...] = ("nginx", "-s", "reload")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """Sends a message through Apprise; never undone."""

    url: str
    title: str = ""
    body: str = ""


Settings = Run | Http | Kubernetes | Systemd | HaProxy | Nginx | Notify
UNDO_THEMSELVES = (Kubernetes, Systemd, HaProxy, Nginx)
TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    settings: Settings
    """The settings, whose type is the kind of the action."""
    timeout_s: float = TIMEOUT_S
    """How long each attempt may take."""
    retries: int = 0
    on_failure: OnFailure = OnFailure.STOP
    undo: Run | Http | None = None
    """The undo of kinds that cannot undo themselves."""
    name: str = ""

    @property
    def is_undoable(self) -> bool:
        return self.undo is not None or isinstance(self.settings, UNDO_THEMSELVES)

    @property
    def title(self) -> str:
        """The name of the action for people."""
        return self.name or title_of(self.settings)

    def key(self, event_id: str) -> str:
        """Return a key; events whose actions have the same key share what the action did."""
        said = repr((self.settings, self.undo))
        return f"{said} for {event_id}" if _OF_THE_EVENT.search(said) else said


_OF_THE_EVENT = re.compile(r"\{(?:event\.|phase|time_left)")


def title_of(settings: Settings) -> str:
    match settings:
        case Run(is_shell=True):
            return f"run {settings.command[-1]!r}"
        case Run():
            return "run " + " ".join(settings.command)
        case Http():
            return f"http {settings.method} {redacted(settings.url)}"
        case Kubernetes():
            return f"kubernetes {'drain' if settings.drain else 'cordon'} {settings.node}"
        case Systemd():
            return "systemd stop " + " ".join(settings.stop)
        case HaProxy():
            return f"haproxy {settings.state} {settings.server}"
        case Nginx():
            return f"nginx {settings.upstream}/{settings.server} down"
        case Notify():
            # The rest of such an address is often a secret.
            return f"notify {settings.url.partition('://')[0]}://…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """While the command exits with anything but 0, approval is held."""

    command: tuple[str, ...]
    is_shell: bool = False
    every_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """How VMs tell each other that they are ready if the service is not Fairwarning."""

    directory: str = ""
    urls: tuple[str, ...] = ()
    """The agents of the others, as `http://HOST:PORT`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approve:
    when: When = When.SUCCESS
    shared: Shared = Shared.ALL
    lead_s: float | None = None
    """No earlier than this before NotBefore; None: at once."""
    hold: Hold | None = None
    peers: Peers | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A range of seconds, both ends included; None: no bound."""

    min_s: float | None = None
    max_s: float | None = None

    def holds(self, value_s: float) -> bool:
        above = self.min_s is None or value_s >= self.min_s
        return above and (self.max_s is None or value_s <= self.max_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule; a condition that is empty or None is not checked."""

    name: str
    types: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    description: str = ""
    """A regular expression that the description must contain."""
    duration: Span | None = None
    resources: tuple[str, ...] = ()
    """Patterns such as `web-*`; one must match a resource of the event."""
    tags: Mapping[str, str] = field(default_factory=dict)
    time_left: Span | None = None
    concerns: Concerns = Concerns.ME
    approve: Approve = Approve()
    scheduled: tuple[Action, ...] = ()
    started: tuple[Action, ...] = ()
    finished: tuple[Action, ...] = ()
    cancelled: tuple[Action, ...] = ()

    def actions(self, phase: Phase) -> tuple[Action, ...]:
        match phase:
            case Phase.SCHEDULED:
                return self.scheduled
            case Phase.STARTED:
                return self.started
            case Phase.FINISHED:
                return self.finished
            case Phase.CANCELLED:
                return self.cancelled


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    endpoint: str = ""
    """URL of the service; empty: where the client finds it."""
    name: str = ""
    """Name of this VM; empty: ask the service."""
    state: str = "/var/lib/fairwarning/agent.json"
    margin_s: float = 30.0
    """How long before NotBefore draining must end; at most a quarter of the notice."""
    ahead_s: float = 3_600.0
    """How long before NotBefore work begins: an approval days ahead would start the event now."""
    listen: tuple[str, int] | None = ("127.0.0.1", 9169)
    approve: Approve = Approve()
    rules: tuple[Rule, ...] = ()


def setting_names(kind: type[Settings]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))
