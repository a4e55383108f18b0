"""How long an event must stay missing before it is taken to be over. Pure.

Theory of operation. A document that is newer than all before it is right at once, so this is
about the others. Within one life of a service the numbers only grow, so one with a lower number
is old, and says nothing; unless the service began anew, and then it is all there is. The two look
alike but for how long they last, and so that is what decides, with more patience the more is at
stake and the longer the service has been seen to hand out old documents. In doubt the service is
asked once a second, so the numbers of answers are seconds too.
"""

from datetime import datetime

from fairwarning.client.model import Document, Event, Status
from fairwarning.client.seen import Seen

CONFIRMATIONS = 5
"""A document without the event that has the number of the one that showed it is of a service that
began anew, or that does not count. One with a higher number is newer, if both are of the life that
began when the numbers fell; that of the life before ended with the highest number."""
CONFIRMATIONS_OF_AN_END = 60
"""For an event that may well be over."""
CONFIRMATIONS_OF_A_CANCELLATION = 300
"""For one that is still to come: whoever takes it for cancelled is rebooted unprepared."""
LIES_TO_TRUTH = 10
"""An event is over when it was missing for so many times as long as ever by mistake."""
CONFIRMATIONS_MAX = 3_600
"""An end is not kept back for much longer than an hour, whatever the service did before."""


def may_be_over(event: Event, now: datetime, *, is_approved: bool) -> bool:
    """It has begun, or nothing kept it from beginning."""
    is_due = event.not_before is not None and now >= event.not_before
    return event.status is Status.STARTED or is_approved or is_due


def confirmations(seen: Seen, id: str, document: Document, now: datetime) -> int:
    """So many documents in a row that are not newer must miss the event."""
    shown_in = seen.shown_in(id)
    if document.incarnation == shown_in or shown_in < document.incarnation < seen.incarnation:
        return _by_experience(seen, CONFIRMATIONS)
    if may_be_over(seen.events[id], now, is_approved=id in seen.approved):
        return _by_experience(seen, CONFIRMATIONS_OF_AN_END)
    return _by_experience(seen, CONFIRMATIONS_OF_A_CANCELLATION)


def confirmations_of_nothing(seen: Seen) -> int:
    """So many answers in a row without any document must have come since it was last shown."""
    return _by_experience(seen, CONFIRMATIONS_OF_AN_END)


def longest_lie(seen: Seen, document: Document) -> int:
    """With what the events in this document tell about those that did not show them."""
    lies = [seen.longest_lie]
    for event in document.events:
        lies.append(seen.missed.get(event.id, 0))
        if document.incarnation >= seen.presumed.get(event.id, document.incarnation + 1):
            lies.append(_by_experience(seen, CONFIRMATIONS_OF_AN_END))
    return max(lies)


def _by_experience(seen: Seen, at_least: int) -> int:
    return min(max(at_least, LIES_TO_TRUTH * seen.longest_lie), CONFIRMATIONS_MAX)
