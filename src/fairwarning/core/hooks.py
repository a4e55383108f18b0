"""A hook is a program or a web address of the operator that is called before or after an impact.

This module has the hooks of a scope and their limits. `hook_results.py` has what follows from their
results.
"""

from enum import StrEnum
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from fairwarning.common.url_redaction import HIDDEN, redacted
from fairwarning.core.instants import MINUTE_MS, SECOND_MS

HOOKS_MAX = 8  # In each of the two lists. An instance waits for all of them.
HOOK_TIMEOUT_MS_MIN = SECOND_MS  # A shorter one would fail on a busy machine.
HOOK_TIMEOUT_MS_MAX = 30 * MINUTE_MS  # Instances wait while a hook runs.
HOOK_RETRIES_MAX = 10  # A hook that fails more often needs a person.
HOOK_PAUSE_MS_MAX = 5 * MINUTE_MS  # Instances wait while the event is started.
HOOK_NAME_CHARS_MAX = 64  # Short enough for a line of the timeline.
HOOK_WORDS_MAX = 64  # Every roster holds them, so they must stay small.
HOOK_OUTPUT_CHARS_MAX = 2_000
"""How much of the end of a hook's output is kept in the journal, which must stay small."""


class HookStage(StrEnum):
    BEFORE = "before"
    AFTER = "after"


class OnFailure(StrEnum):
    FAIL = "fail"
    """The event ends as failed, without an impact."""
    GO_ON = "go-on"


class Hook(Struct, frozen=True, kw_only=True):
    """One hook. It has either `run` or `url`."""

    run: tuple[str, ...] = ()
    """The program and its arguments, which may contain secrets."""
    url: str = ""
    secret_env: str = ""
    """The environment variable with the secret that signs what is posted. Empty means unsigned."""
    name: str = ""
    timeout_ms: int = 30 * SECOND_MS
    """How long one try may take."""
    retries: int = 0
    pause_ms: int = 5 * SECOND_MS
    """How long to wait before the next try."""
    on_failure: OnFailure = OnFailure.FAIL
    """What follows when the last try has failed. It counts for hooks before an impact only."""

    @property
    def label(self) -> str:
        """What histories call the hook. It contains no secret."""
        if self.name:
            return self.name
        if self.run:
            return self.run[0].rpartition("/")[2][:HOOK_NAME_CHARS_MAX]
        return (urlsplit(self.url).hostname or "")[:HOOK_NAME_CHARS_MAX]

    @property
    def longest_ms(self) -> int:
        """How long the hook may take, with all its tries and pauses."""
        return self.timeout_ms * (self.retries + 1) + self.pause_ms * self.retries

    @property
    def without_secrets(self) -> "Hook":
        words = self.run if len(self.run) < 2 else (self.run[0], HIDDEN)
        return replace(self, run=words, url=redacted(self.url) if self.url else "")


class Hooks(Struct, frozen=True, kw_only=True):
    """The hooks of a scope, in the order in which they run."""

    before: tuple[Hook, ...] = ()
    after: tuple[Hook, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.before or self.after)

    def of(self, stage: HookStage) -> tuple[Hook, ...]:
        return self.before if stage is HookStage.BEFORE else self.after

    @property
    def longest_ms(self) -> int:
        return sum(each.longest_ms for each in (*self.before, *self.after))

    @property
    def without_secrets(self) -> "Hooks":
        return Hooks(
            before=tuple(each.without_secrets for each in self.before),
            after=tuple(each.without_secrets for each in self.after),
        )
