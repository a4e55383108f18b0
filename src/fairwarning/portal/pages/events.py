"""The pages of events: the list with its filters, one event with its timeline, and the approval of
several events at once, after a page that shows who is affected.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from starlette.responses import Response

from fairwarning.core.api_versions import NEWEST
from fairwarning.core.journal_text import listed
from fairwarning.core.model import EventType, Phase, Source
from fairwarning.core.refusals import Refused
from fairwarning.operator_api.problems import Problem
from fairwarning.operator_api.schemas import Entry, Event, Events
from fairwarning.portal import shell_commands
from fairwarning.portal.app import Page
from fairwarning.portal.page_context import PageContext
from fairwarning.portal.time_zones import ZONE, local, rfc3339_of, zone_of

ROWS = 25  # A row has 15 elements, and a page is to have at most 600.
CHOICES: Mapping[str, tuple[str, ...]] = {
    "phase": tuple(Phase),
    "type": tuple(EventType),
    "source": tuple(Source),
}
FILTERS = (*CHOICES, "scope", "instance")
PATH = "/events/{id}"
OTHERS_MAX = 5  # Each of them is one more request to the API.
RENEWED = "LeaseRenewed"
_TONES = {
    "Scheduled": "wait",
    "Seen": "",
    "Drained": "good",
    "Approved": "good",
    "Started": "busy",
    "HandedOver": "busy",
    RENEWED: "busy",
    "AttemptLost": "bad",
    "AttemptFailed": "bad",
    "HookFinished": "good",
    "ImpactEnded": "busy",
    "Completed": "good",
    "Cancelled": "",
    "Failed": "bad",
}
CHOSEN = "/events/chosen"
CHOSEN_MAX = 200  # A page shows fewer events, and each is a request to the API.


async def events(context: PageContext) -> Response:
    chosen = {name: context.query[name].strip() for name in FILTERS if context.query.get(name)}
    problem, found = "", Events(events=[], next=None)
    try:
        found = await context.ask(
            "GET", "/events", query={**chosen, "after": context.query.get("after"), "limit": ROWS}
        )
    except Problem as refused:
        # For an unknown or ambiguous name, the page explains the problem above an empty list.
        if refused.status >= 500:
            raise
        problem = refused.detail
    return await context.show(
        "events.html",
        events=found.events,
        next=_url({**chosen, "after": found.next}) if found.next else "",
        first=_url(chosen),
        is_later="after" in context.query,
        chosen=chosen,
        choices=CHOICES,
        problem=problem,
    )


def _url(query: Mapping[str, str]) -> str:
    return f"/events?{urlencode(query)}" if query else "/events"


async def event(context: PageContext) -> Response:
    names = {"id": context.names["id"]}
    found: Event = await context.ask("GET", PATH, names=names)
    seen = await context.ask("GET", f"{PATH}/documents", names=names)
    others = [
        await context.ask("GET", PATH, names={"id": id}) for id in found.waits_for[:OTHERS_MAX]
    ]
    zone = zone_of(context.request.cookies.get(ZONE))
    urls, host = context.control.metadata_urls, context.request.url.hostname or "localhost"
    return await context.show(
        "event.html",
        event=found,
        others=others,
        steps=steps(found),
        is_pending=found.phase is Phase.SCHEDULED,
        is_over=found.ended is not None,
        documents=seen.documents[::-1],
        newest=NEWEST.name,
        curls={
            each.api_version: shell_commands.curl(urls, host, found.resources[0], each.api_version)
            for each in seen.documents
        },
        can_play=shell_commands.can_play(urls),
        asks=_asks(context, found, zone),
        name_of=name_of,
        zone=zone,
        at=local(found.not_before, zone),
    )


def approving(context: PageContext, event: Event, zone: ZoneInfo) -> str:
    """Return the question that asks for confirmation and says what the approval will do."""
    said = context.t("event.ask-approve", **_facts(event, zone))
    if event.waits_for:
        said += " " + context.t("event.ask-approve-waits", count=len(event.waits_for))
    return f"{said} {context.t('event.ask-no-way-back')}"


async def approve(context: PageContext) -> Response:
    done: Event = await context.ask("POST", f"{PATH}/approve", names={"id": context.names["id"]})
    facts = {"type": done.type, "names": listed(done.resources)}
    if done.phase is Phase.SCHEDULED:
        return context.back(said=context.t("event.approved-waits", **facts))
    return context.back(said=context.t("event.approved", **facts))


async def cancel(context: PageContext) -> Response:
    body = {"reason": context.form.get("reason", "")}
    done: Event = await context.ask(
        "POST", f"{PATH}/cancel", names={"id": context.names["id"]}, body=body
    )
    said = context.t("event.cancelled", type=done.type, names=listed(done.resources))
    return context.go(f"/events/{done.id}", said=said)


async def postpone(context: PageContext) -> Response:
    done: Event = await context.ask(
        "POST", f"{PATH}/postpone", names={"id": context.names["id"]}, body=_until(context)
    )
    return context.go(f"/events/{done.id}", said=context.t("event.postponed"))


def _until(context: PageContext) -> Mapping[str, str]:
    """Return the request's body with `notice`, or with `notBefore` from a time in the form's zone.
    Raises Problem unless exactly one of the two fields is filled in, with a valid time.
    """
    at, notice = context.form.get("at", "").strip(), context.form.get("notice", "").strip()
    if bool(at) == bool(notice):
        raise Problem(422, "form-incomplete", context.t("event.postpone-either"))
    if notice:
        return {"notice": notice}
    instant = rfc3339_of(at, zone_of(context.form.get("zone")))
    if instant is None:
        raise Problem(422, "form-incomplete", context.t("event.postpone-no-time", text=at[:40]))
    return {"notBefore": instant}


def _asks(context: PageContext, event: Event, zone: ZoneInfo) -> Mapping[str, str]:
    facts = _facts(event, zone)
    return {
        "approve": approving(context, event, zone),
        "cancel": context.t("event.ask-cancel", **facts),
        "postpone": context.t("event.ask-postpone", **facts),
    }


def _facts(event: Event, zone: ZoneInfo) -> Mapping[str, object]:
    return {
        "type": event.type,
        "names": listed(event.resources),
        "count": len(event.resources),
        "at": local(event.not_before, zone),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    kind: str
    tone: str
    at: str
    by: str
    """The name of the actor; empty if the engine did it."""
    why: str
    name: str = ""
    """The instance that has seen the event or that is drained, or the hook that has ended."""
    variant: str = ""
    """The end of the key of the step's text, if the step has several texts."""
    stage: str = ""
    """When a hook ran: `before` or `after` the impact."""
    number: str = ""
    attempt: str = ""
    node: str = ""
    reason: str = ""
    """Why something failed, or how a hook ended."""
    output: str = ""
    """The end of what a hook has written."""
    cause: str = ""
    """Why the event started."""
    repeats: int = 1
    until: str = ""
    """When a repeated step happened last; empty if it happened once."""


def steps(event: Event) -> list[Step]:
    """Return the steps of the event's timeline, in order. Repeated lease renewals are one step."""
    told: list[Step] = []
    for entry in event.timeline:
        if entry.kind not in _TONES:
            continue
        before = told[-1] if told else None
        if before is not None and before.kind == entry.kind == RENEWED:
            told[-1] = replace(before, repeats=before.repeats + 1, until=entry.at)
        else:
            told.append(_step(entry))
    return [_once(each, before) for each, before in zip(told, [None, *told], strict=False)]


def _once(step: Step, before: Step | None) -> Step:
    """Return the step without `why` if the step before has the same time and the same `why`."""
    is_same = before is not None and (before.at, before.why) == (step.at, step.why)
    return replace(step, why="") if is_same else step


def _step(entry: Entry) -> Step:
    def said(key: str) -> str:
        return str(entry.data.get(key) or "")

    has_failed = entry.data.get("is_done") is False or said("outcome") == Phase.FAILED
    return Step(
        kind=entry.kind,
        tone="bad" if has_failed else _TONES[entry.kind],
        at=entry.at,
        by=name_of(entry.by),
        why=entry.why,
        name=said("name"),
        variant="-failed" if has_failed else "",
        stage=said("stage"),
        number=said("number"),
        attempt=said("attempt"),
        node=said("node"),
        reason=said("reason") or said("result"),
        output=said("output"),
        cause=said("cause"),
    )


def name_of(actor: str) -> str:
    """Return the name of an actor: `local` for `operator:local`. The engine has none."""
    kind, _, name = actor.partition(":")
    return "" if kind == "engine" else name or kind


async def preview_approval(context: PageContext) -> Response:
    """Show which events would be approved, and who is affected, before anything is done."""
    found = await _chosen(context)
    if not found:
        return context.back(said=context.t("events.none-chosen"), failed=True)
    return await context.show(
        "approve_chosen.html",
        events=found,
        instances=len({(each.scope, name) for each in found for name in each.resources}),
    )


async def approve_chosen(context: PageContext) -> Response:
    """Approve the events one by one. An event that ended meanwhile does not stop the others."""
    done, refused = 0, []
    for id in _ids(context):
        try:
            await context.ask("POST", "/events/{id}/approve", names={"id": id})
            done += 1
        except (Problem, Refused) as wrong:
            text = wrong.detail if isinstance(wrong, Problem) else wrong.message
            refused.append(context.t("events.not-approved", id=id[:8], why=text))
    said = context.t("events.approved-chosen", count=done)
    return context.go("/", said=" ".join([said, *refused]), failed=bool(refused))


async def _chosen(context: PageContext) -> list[Event]:
    found: list[Event] = [
        await context.ask("GET", "/events/{id}", names={"id": id}) for id in _ids(context)
    ]
    return [each for each in found if each.phase is Phase.SCHEDULED]


def _ids(context: PageContext) -> list[str]:
    return list(dict.fromkeys(context.lists.get("event", ())))[:CHOSEN_MAX]


PAGES = (
    Page("/events", events),
    # Before the pages of one event, whose path would match too.
    Page(f"{CHOSEN}/preview", preview_approval, sends=True),
    Page(f"{CHOSEN}/approve", approve_chosen, sends=True),
    Page(PATH, event),
    Page(f"{PATH}/approve", approve, sends=True),
    Page(f"{PATH}/cancel", cancel, sends=True),
    Page(f"{PATH}/postpone", postpone, sends=True),
)
