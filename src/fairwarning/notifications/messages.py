"""Makes messages of journal entries: a CloudEvent for programs, and text for people. Pure.

The same entry always gives the same message, so a repeated message has the same bytes.
"""

import json
import re
import string

import msgspec

from fairwarning.core.instants import Instant, format_optional, format_rfc3339
from fairwarning.core.journal_text import in_words, sentence, without_secrets
from fairwarning.core.model import Event, ScopeId
from fairwarning.core.transitions import Noted, kind_of
from fairwarning.engine.protocols import Entry
from fairwarning.notifications.model import Message, Template, Words

CONTENT_TYPE = "application/cloudevents+json"
TYPE_PREFIX = "com.fairwarning"
_WITHOUT_EVENT = Template(title="$kind", body="$text\nscope $scope")
"""The template for entries that are about no event, unless the target has its own."""
_INNER_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


def message_of(entry: Entry, event: Event | None, template: Template) -> Message:
    """Return the message about `entry`. `event` is the event after the entry, or None."""
    title, text = in_sentences(entry, event, template)
    body = to_json(cloud_event(entry, event))
    return Message(id=entry.position, title=title, text=text, body=body)


def in_sentences(entry: Entry, event: Event | None, template: Template) -> tuple[str, str]:
    """Return the title and the text of the message for people."""
    if event is None and template == Template():
        template = _WITHOUT_EVENT
    return fill(template, words_of(entry, event))


def trial_message(id: str, name: str, now: Instant) -> Message:
    """Return the message that a target gets when somebody tests it."""
    text = trial_text(name)
    body: dict[str, object] = {
        "specversion": "1.0",
        "id": id,
        "source": "/fairwarning/",
        "type": f"{TYPE_PREFIX}.notification.test.v1",
        "time": format_rfc3339(now),
        "datacontenttype": "application/json",
        "data": {"text": text},
    }
    return Message(id=id, title="Fairwarning: a test", text=text, body=to_json(body))


def trial_text(name: str) -> str:
    return f"This is a test of the notifications to {name}. Nothing has happened."


def cloud_event(entry: Entry, event: Event | None) -> dict[str, object]:
    subject = {} if event is None else {"subject": event.id}
    return {
        "specversion": "1.0",
        "id": entry.position,
        "source": f"/fairwarning/{entry.scope_id}",
        "type": _type_of(entry, event),
        **subject,
        "time": format_rfc3339(entry.at_ms),
        "datacontenttype": "application/json",
        "data": {
            "event": None if event is None else _event(entry.scope_id, event),
            "entry": _entry(entry),
        },
    }


def words_of(entry: Entry, event: Event | None) -> Words:
    """Return a value for each of `NAMES`. Without an event, the values about it are empty."""
    words = {
        "kind": _kind_of(entry).replace("-", " "),
        "text": sentence(entry.transition),
        "scope": entry.scope_id,
        "by": str(entry.by),
        "why": entry.why,
        "at": in_words(entry.at_ms),
    }
    if event is None:
        return words
    return words | {
        "event": event.id,
        "type": event.type,
        "phase": event.phase,
        "source": event.source,
        "resources": ", ".join(event.resources),
        "update_domain": str(event.update_domain),
        "not_before": in_words(event.not_before_ms),
        "duration": "unknown" if event.duration_s < 0 else f"{event.duration_s} s",
        "description": event.description,
        "outcome": event.outcome,
    }


def _type_of(entry: Entry, event: Event | None) -> str:
    about = "event" if event else "record" if isinstance(entry.transition, Noted) else "scope"
    return f"{TYPE_PREFIX}.{about}.{_kind_of(entry)}.v1"


def _kind_of(entry: Entry) -> str:
    """Return the kind of the entry in lower case, such as `attempt-failed` for AttemptFailed."""
    return _INNER_CAPITAL.sub("-", kind_of(entry.transition)).lower()


def _event(scope_id: ScopeId, event: Event) -> dict[str, object]:
    """Return the event as in the JSON of the operator API, without its timeline."""
    return {
        "id": event.id,
        "scope": scope_id,
        "type": event.type,
        "phase": event.phase,
        "source": event.source,
        "resources": list(event.resources),
        "updateDomain": event.update_domain,
        "notBefore": format_rfc3339(event.not_before_ms),
        "description": event.description,
        "durationSeconds": event.duration_s,
        "created": format_rfc3339(event.created_ms),
        "started": format_optional(event.started_ms),
        "ended": format_optional(event.ended_ms),
        "outcome": event.outcome,
        "startCause": event.start_cause,
        "operation": event.operation,
        "announced": event.announced,
        "replacedBy": event.replaced_by,
        "approvals": [
            {"by": str(each.by), "at": format_rfc3339(each.at_ms)} for each in event.approvals
        ],
    }


def _entry(entry: Entry) -> dict[str, object]:
    """Return the entry as in the JSON of the operator API."""
    return {
        "position": entry.position,
        "at": format_rfc3339(entry.at_ms),
        "scope": entry.scope_id,
        "event": getattr(entry.transition, "event_id", None),
        "kind": kind_of(entry.transition),
        "by": str(entry.by),
        "why": entry.why,
        "text": sentence(entry.transition),
        "data": msgspec.to_builtins(without_secrets(entry.transition)),
    }


def to_json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


NAMES = (
    "kind", "text", "scope", "by", "why", "at", "event", "type", "phase", "source", "resources",
    "update_domain", "not_before", "duration", "description", "outcome",
)  # fmt: skip
"""The names that a template may use."""
TEMPLATE_CHARS_MAX = 4_000  # A chat message is short.
TITLE_CHARS_MAX = 250  # The subject of a mail is one line.
TEXT_CHARS_MAX = 16_000  # No message for people needs more.


def template_problem(template: Template) -> str | None:
    """Return what is wrong with the template and how to fix it, or None if it is valid."""
    for part, text in (("title", template.title), ("body", template.body)):
        if len(text) > TEMPLATE_CHARS_MAX:
            return f"the template's {part} has {len(text)} characters; use {TEMPLATE_CHARS_MAX}"
        parsed = string.Template(text)
        if not parsed.is_valid():
            return f"the template's {part} has a $ without a name; write $$ for a dollar"
        unknown = [each for each in parsed.get_identifiers() if each not in NAMES]
        if unknown:
            names = ", ".join(f"${name}" for name in NAMES)
            return f"the template's {part} has ${unknown[0][:50]}; use {names}"
    if not template.body.strip():
        return "the template's body is empty; put at least $text into it"
    return None


def fill(template: Template, words: Words) -> tuple[str, str]:
    """Return title and text, with each `$name` replaced and `$$` as `$`. The title is one line."""
    known = dict.fromkeys(NAMES, "") | dict(words)
    title = " ".join(string.Template(template.title).substitute(known).split())
    text = string.Template(template.body).substitute(known)
    return title[:TITLE_CHARS_MAX], text[:TEXT_CHARS_MAX]
