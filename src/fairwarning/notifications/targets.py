"""Checks a target before it is created. Pure."""

import re

from fairwarning.core.driver_settings import is_http_url
from fairwarning.core.instants import Instant
from fairwarning.core.limits import refuse_text
from fairwarning.core.model import Actor
from fairwarning.core.refusals import Code, Refused
from fairwarning.core.webhook_signatures import BadSecret, key_of
from fairwarning.notifications import model
from fairwarning.notifications.messages import template_problem
from fairwarning.notifications.model import Target, TargetDraft

NAME_CHARS_MAX = 100  # The name must fit into a line of a table.
URL_CHARS_MAX = 2_000  # The longest URL that most programs accept.
FILTERED_MAX = 100  # Each entry is compared with all of them.
_NAME = re.compile(r"[\w][\w .@-]*")


def checked_target(
    draft: TargetDraft, *, id: str, new_secret: str, now: Instant, by: Actor
) -> Target:
    """Return the target. A webhook without a secret gets `new_secret`. Raises Refused."""
    problem = _problem(draft)
    if problem is not None:
        raise Refused(Code.NOTIFICATION_INVALID, problem)
    is_webhook = draft.kind is model.TargetKind.WEBHOOK
    return Target(
        id=id,
        name=draft.name,
        kind=draft.kind,
        url=draft.url,
        secret=(draft.secret or new_secret) if is_webhook else "",
        format=draft.format,
        filters=draft.filters,
        template=draft.template,
        created_ms=now,
        created_by=by,
    )


def _problem(draft: TargetDraft) -> str | None:
    for text in (draft.url, draft.template.title, draft.template.body, *draft.filters.scopes):
        refuse_text("target of notifications", text)
    if len(draft.name) > NAME_CHARS_MAX or not _NAME.fullmatch(draft.name):
        return (
            f"a name has 1 to {NAME_CHARS_MAX} letters, digits, spaces or . _ @ -; choose such a "
            "name"
        )
    return (
        _address_problem(draft)
        or _filters_problem(draft.filters)
        or _format_problem(draft)
        or template_problem(draft.template)
    )


def _address_problem(draft: TargetDraft) -> str | None:
    if len(draft.url) > URL_CHARS_MAX:
        return f"the url has {len(draft.url)} characters; use at most {URL_CHARS_MAX}"
    if draft.kind is model.TargetKind.APPRISE:
        if draft.secret:
            return "an apprise target signs nothing; leave its secret out"
        return None if "://" in draft.url else "the url is no Apprise URL; write scheme://…"
    if not is_http_url(draft.url):
        return "the url of a webhook begins with http:// or https:// and names a host; give one"
    try:
        if draft.secret:
            key_of(draft.secret)
    except BadSecret as bad:
        return f"{bad}; leave it out to get a new one"
    return None


def _filters_problem(filters: model.Filters) -> str | None:
    if not filters.kinds:
        return "the target wants no kind of transition; leave kinds out for the usual ones"
    unknown = [each for each in filters.kinds if each not in model.ALL_KINDS]
    if unknown:
        return (
            f"no transition is called {unknown[0][:50]!r}; use {', '.join(sorted(model.ALL_KINDS))}"
        )
    if len(filters.scopes) > FILTERED_MAX:
        return f"the target names {len(filters.scopes)} scopes; use at most {FILTERED_MAX}"
    if not all(filters.scopes):
        return "a scope to filter by is empty; take it out"
    return None


def _format_problem(draft: TargetDraft) -> str | None:
    if draft.format is not model.Format.EVENT_GRID:
        return None
    if draft.kind is not model.TargetKind.WEBHOOK:
        return "Event Grid messages go to webhooks; leave the format out, or make it a webhook"
    unknown = [each for each in draft.filters.kinds if each not in model.EVENT_GRID_KINDS]
    if unknown:
        return (
            f"Event Grid has no message for {unknown[0]}; take it out of the kinds, or use "
            f"{', '.join(model.EVENT_GRID_KINDS)}"
        )
    return None
