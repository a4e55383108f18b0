"""One whole check: the audition, the stories, the report."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from fairwarning.check.audience import Audience
from fairwarning.check.model import Order, Report, Result, Verdict
from fairwarning.check.network import ENDPOINT, NoNamespaces, new_network


class CannotCheck(Exception):
    """The handler could not be started, or never asked. The message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the user asked for."""

    command: tuple[str, ...]
    stories: tuple[str, ...]
    patience_s: float
    jobs: int
    approves: bool
    namespace: bool | None
    """None: if this machine lets us."""


def check(wish: Wish, tell: Callable[[Result], None]) -> Report:
    """`tell` hears of each story as it ends. Raises CannotCheck and NoNamespaces."""
    began = time.monotonic()
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if shutil.which(wish.command[0]) is None:
        raise CannotCheck(f"there is no program {wish.command[0]!r}; give the command after `--`")
    in_namespace = _has_namespace(wish.namespace)
    audience = Audience()
    try:
        _hear(audience, wish, in_namespace)
        orders = [_order(wish, name, in_namespace) for name in wish.stories]
        results = audience.see_all(orders, wish.jobs, tell)
    finally:
        audience.stop()
    return Report(
        command=wish.command,
        at=at,
        network=f"at {ENDPOINT}, in a network of its own" if in_namespace else "by its base URL",
        took_s=round(time.monotonic() - began, 1),
        results=tuple(results),
    )


def _has_namespace(wanted: bool | None) -> bool:
    if wanted is False:
        return False
    try:
        new_network()
    except NoNamespaces:
        if wanted:
            raise
        return False
    return True


def _order(wish: Wish, story: str, in_namespace: bool) -> Order:
    return Order(
        story=story,
        command=wish.command,
        patience_s=wish.patience_s,
        approves=wish.approves,
        in_namespace=in_namespace,
    )


def _hear(audience: Audience, wish: Wish, in_namespace: bool) -> None:
    """Whoever cannot find the server would fail every story, and for one reason only."""
    result = audience.see(_order(wish, "", in_namespace))
    if result.verdict is not Verdict.FAILED:
        return
    point = result.points[0]
    said = f"\n{_indented(result.output)}" if result.output else ""
    where = (
        f"It finds the endpoint at http://{ENDPOINT} or in FAIRWARNING_METADATA_URL; nothing else "
        "can be reached from there, unless you give --no-namespace"
        if in_namespace
        else "It must use the URL in FAIRWARNING_METADATA_URL, or in the place of {url} in its "
        f"command, instead of http://{ENDPOINT}"
    )
    raise CannotCheck(f"the handler should {point.should}, and {point.did}. {where}.{said}")


def _indented(text: str) -> str:
    return "\n".join(f"  {each}" for each in text.splitlines())
