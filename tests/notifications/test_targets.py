"""A target is checked before it is created."""

import pytest

from fairwarning.core.refusals import Code, Refused
from fairwarning.notifications.model import (
    Filters,
    TargetDraft,
    TargetKind,
    Template,
)
from fairwarning.notifications.targets import checked_target
from tests.core.builders import T0
from tests.engine.harness import ME

GOOD = {"name": "ops", "kind": TargetKind.WEBHOOK, "url": "https://example.com/x"}
WHSEC = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.mark.parametrize(
    "slip",
    [
        {"name": ""},
        {"name": "a\nb"},
        {"name": "a" * 101},
        {"url": "example.com/x"},
        {"url": "ftp://example.com/x"},
        {"url": "https://"},
        {"url": "https://[::1/"},
        {"url": "https://example.com:99999/"},
        {"url": "https://example.com/" + "x" * 2_000},
        {"secret": "hunter2"},
        {"secret": "whsec_aGk="},
        {"kind": TargetKind.APPRISE, "url": "slack://x", "secret": WHSEC},
        {"kind": TargetKind.APPRISE, "url": "slack"},
        {"filters": Filters(kinds=())},
        {"filters": Filters(kinds=("Rebooted",))},
        {"filters": Filters(scopes=("",))},
        {"filters": Filters(scopes=("web",) * 101)},
        {"template": Template(title="$nonsense")},
    ],
    ids=str,
)
def test_a_target_that_makes_no_sense_is_refused(slip: dict[str, object]) -> None:
    draft = TargetDraft(**{**GOOD, **slip})  # type: ignore[arg-type]
    with pytest.raises(Refused) as refused:
        checked_target(draft, id="1", new_secret=WHSEC, now=T0, by=ME)
    assert refused.value.code is Code.NOTIFICATION_INVALID
    assert "hunter2" not in refused.value.message


def test_a_webhook_keeps_the_secret_it_brings_and_gets_one_if_it_brings_none() -> None:
    mine = "whsec_" + "AAAA" * 8
    for given_secret, kept in ((mine, mine), ("", WHSEC)):
        draft = TargetDraft(**GOOD, secret=given_secret)  # type: ignore[arg-type]
        target = checked_target(draft, id="1", new_secret=WHSEC, now=T0, by=ME)
        assert target.secret == kept


def test_a_chat_has_no_secret_to_sign_with() -> None:
    draft = TargetDraft(name="chat", kind=TargetKind.APPRISE, url="json://127.0.0.1")
    assert checked_target(draft, id="1", new_secret=WHSEC, now=T0, by=ME).secret == ""
