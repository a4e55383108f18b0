"""The values of the agent's config. The package `config` reads them from the file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fairwarning.common.url_redaction import redacted


class Phase(StrEnum):
    """The phase of an event. A rule has a list of actions for each phase."""

    SCHEDULED = "scheduled"
    STARTED = "started"
    FINISHED = "finished"
    CANCELLED = "cancelled"


class OnFailure(StrEnum):
    STOP = "stop"
    """Skip the rest of the list, and do not approve the event."""
    CONTINUE = "continue"


class When(StrEnum):
    SUCCESS = "success"
    NEVER = "never"
    ALWAYS = "always"


class Shared(StrEnum):
    """Which VM approves an event that affects several VMs."""

    LEADER = "leader"
    """The first VM in Resources approves as soon as it is ready itself."""
    ALL = "all"
    """Any VM approves when it sees that all VMs of the event are ready."""


class Concerns(StrEnum):
    ME = "me"
    OTHERS = "others"
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Runs a command. It gets the event as JSON on standard input, and in its environment."""

    command: tuple[str, ...]
    """The argv. Templates in it are filled in, unless `is_shell` is true."""
    is_shell: bool = False
    """Whether `command` is `/bin/sh -c TEXT`. Templates are refused in TEXT, because the shell must
    never run parts of an event. TEXT can use the environment instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Http:
    """Sends an HTTP request. A status from 200 to 299 means success."""

    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubernetes:
    """Cordons a node, and drains it unless `drain` is false. The undo uncordons the node."""

    node: str = "{me}"
    drain: bool = True
    kubectl: str = "kubectl"
    kubeconfig: str = ""
    context: str = ""
    grace_period_s: int | None = None
    """The time that pods get to end. None means the grace period of each pod."""
    ignore_daemonsets: bool = True
    delete_emptydir_data: bool = False
    force: bool = False
    """Whether to delete even pods that no controller would start again elsewhere."""
    pod_selector: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Systemd:
    """Stops units in this order. The undo starts those that ran, in the opposite order."""

    stop: tuple[str, ...]
    user: bool = False
    """Whether the units belong to the user's own systemd (`systemctl --user`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HaProxy:
    """Takes a server out through HAProxy's runtime socket. The undo restores its earlier state."""

    socket: str
    """The path of the socket, or HOST:PORT."""
    server: str
    """The server, as `backend/name`."""
    state: str = "drain"
    """With `drain`, sessions may go on until they end. With `maint`, they are ended at once."""
    wait: bool = True
    """Whether to wait until no session is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nginx:
    """Marks a server of an upstream as down in a file, and reloads nginx. The undo removes the mark
    and reloads again.
    """

    file: str
    upstream: str
    server: str
    reload: tuple[str, ...] = ("nginx", "-s", "reload")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """Sends a message through Apprise. It has no undo."""

    url: str
    title: str = ""
    body: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patroni:
    """Has Patroni switch over if the local member is the leader. The undo makes it the leader
    again if `switch_back` is true, and else does nothing.
    """

    url: str = "http://127.0.0.1:8008"
    """The REST API of the local Patroni."""
    candidate: str = ""
    """The member that takes over. If it is empty, Patroni chooses."""
    switch_back: bool = False
    user: str = ""
    password: str = field(default="", repr=False)
    password_file: str = ""
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""


Settings = Run | Http | Kubernetes | Systemd | HaProxy | Nginx | Patroni | Notify
UNDO_THEMSELVES = (Kubernetes, Systemd, HaProxy, Nginx, Patroni)
TIMEOUT_S = 300.0  # A third of the 15 minutes of notice that most events give.


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    settings: Settings
    """The settings. Their type is the kind of the action."""
    timeout_s: float = TIMEOUT_S
    """How long each attempt may take."""
    retries: int = 0
    on_failure: OnFailure = OnFailure.STOP
    undo: Run | Http | None = None
    """How to undo a kind of action that cannot undo itself. None means that nothing is undone."""
    name: str = ""

    @property
    def is_undoable(self) -> bool:
        if isinstance(self.settings, Patroni):
            return self.settings.switch_back
        return self.undo is not None or isinstance(self.settings, UNDO_THEMSELVES)

    @property
    def title(self) -> str:
        """The name of the action, or else a short description of it."""
        return self.name or title_of(self.settings)

    def key(self, event_id: str) -> str:
        """Return the key of this action for an event.

        If two events have actions with the same key, the action is done once for both.
        """
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
        case Patroni():
            to = f" to {settings.candidate}" if settings.candidate else ""
            return f"patroni switchover{to}"
        case Notify():
            # The rest of the address is often a secret.
            return f"notify {settings.url.partition('://')[0]}://…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A command that can hold the approval back. It does so while its exit code is not 0."""

    command: tuple[str, ...]
    is_shell: bool = False
    every_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """How VMs tell each other that they are ready, if the service is not Fairwarning."""

    directory: str = ""
    urls: tuple[str, ...] = ()
    """The addresses of the agents of the other VMs, as `http://HOST:PORT`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approve:
    when: When = When.SUCCESS
    shared: Shared = Shared.ALL
    lead_s: float | None = None
    """How long before NotBefore an approval may be sent at the earliest. None means at once."""
    hold: Hold | None = None
    peers: Peers | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A range of seconds. It includes both ends. An end that is None has no limit."""

    min_s: float | None = None
    max_s: float | None = None

    def holds(self, value_s: float) -> bool:
        above = self.min_s is None or value_s >= self.min_s
        return above and (self.max_s is None or value_s <= self.max_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule, with its conditions and actions. A condition that is empty or None always fits."""

    name: str
    types: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    description: str = ""
    """A regular expression that must match a part of the description."""
    duration: Span | None = None
    resources: tuple[str, ...] = ()
    """Patterns such as `web-*`. One of them must match a resource of the event."""
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
class HostShutdown:
    """What the agent does for a shutdown of its own host, such as `systemctl reboot`."""

    delay: bool = False
    """Whether the shutdown waits until the VM is drained, through systemd-logind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    endpoint: str = ""
    """The URL of the service. If it is empty, the client searches for the service."""
    name: str = ""
    """The name of this VM. If it is empty, the service is asked."""
    state: str = "/var/lib/fairwarning/agent.json"
    margin_s: float = 30.0
    """How long before NotBefore draining must end. At most a quarter of the notice is used."""
    ahead_s: float = 3_600.0
    """How long before NotBefore work begins. An approval days ahead would start it at once."""
    listen: tuple[str, int] | None = ("127.0.0.1", 9169)
    approve: Approve = Approve()
    host_shutdown: HostShutdown = HostShutdown()
    rules: tuple[Rule, ...] = ()
