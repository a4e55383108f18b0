"""Targets of notices as the API takes and gives them. A secret goes in, and out only once."""

from typing import Annotated

from msgspec import Meta, field

from fairwarning.control.shapes import In, Name, Out
from fairwarning.core.model import EventType, Source
from fairwarning.notifications.model import Format, TargetKind


class FiltersBody(In):
    types: list[EventType] = []
    scopes: Annotated[list[Name], Meta(max_length=100)] = []
    sources: list[Source] = []
    kinds: Annotated[list[str], Meta(max_length=50)] | None = None


class TemplateBody(In):
    title: Annotated[str, Meta(max_length=500)] | None = None
    body: Annotated[str, Meta(max_length=5_000)] | None = None


class NoticeBody(In):
    name: Annotated[str, Meta(min_length=1, max_length=64)]
    kind: TargetKind
    url: Annotated[str, Meta(min_length=1, max_length=2_000)]
    secret: Annotated[str, Meta(max_length=500)] = ""
    format: Format = Format.CLOUD_EVENTS
    filters: FiltersBody = field(default_factory=FiltersBody)
    template: TemplateBody = field(default_factory=TemplateBody)


class FiltersShown(Out):
    types: list[str]
    scopes: list[str]
    sources: list[str]
    kinds: list[str]


class TemplateShown(Out):
    title: str
    body: str


class NoticeShown(Out):
    id: str
    name: str
    kind: TargetKind
    url: str
    """Without what could be a secret."""
    format: Format
    filters: FiltersShown
    template: TemplateShown
    created: str
    created_by: str


class NoticeMade(NoticeShown):
    secret: str
    """The signing key of a webhook; shown here and nowhere else."""


class NoticesShown(Out):
    notices: list[NoticeShown]


class TrialShown(Out):
    delivered: bool
    error: str


class DeadLetter(Out):
    id: str
    notice: str
    position: str
    title: str
    text: str
    attempts: int
    error: str


class DeadLetters(Out):
    dead_letters: list[DeadLetter]
    next: str | None
