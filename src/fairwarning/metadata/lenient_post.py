"""Tells operators of `--lenient-post` when an instance approves without the Metadata header.

From 2017-08-01 on such a POST is refused, as on Azure. Microsoft's sample in C# sends no header,
and a program that was made from it fails without knowing why.
"""

import logging
from dataclasses import replace

from fairwarning.core.model import InstanceName, ScopeId
from fairwarning.engine.scope_view import Member
from fairwarning.metadata.requests import Head, Kind, Request, parse_request
from fairwarning.metadata.settings import EndpointRules

HINT = "the header Metadata: true is missing; `serve --lenient-post` accepts approvals without it"
TOLD_MAX = 10_000  # Then it begins anew, so that a large fleet costs little memory.

_log = logging.getLogger(__name__)


class LenientPostHints:
    """Logs once for each instance that its approval was refused for the header alone."""

    def __init__(self, rules: EndpointRules) -> None:
        self._lenient = replace(rules, is_header_optional_on_post=True)
        self._told: set[tuple[ScopeId, InstanceName]] = set()

    def approval_in(self, head: Head) -> Request | None:
        """Return the approval that the head would be with the header, or None if it is none."""
        found = parse_request(head, self._lenient)
        return found if isinstance(found, Request) and found.kind is Kind.APPROVE else None

    def log(self, member: Member) -> None:
        key = member.view.scope_id, member.name
        if key in self._told:
            return
        if len(self._told) >= TOLD_MAX:
            self._told.clear()
        self._told.add(key)
        _log.warning("an approval of %s was refused: %s", member.name, HINT)
