"""Known polls are remembered by their bytes, so that equal bytes need no parsing.

A poller sends the same bytes for hours, and most pollers of a fleet are the same program. The
meaning of a request depends only on its bytes and the rules (`requests.py`). The sender and its
permission are still checked for every request.
"""

from fairwarning.metadata.requests import Request
from fairwarning.metadata.settings import REMEMBERED_POLLS_MAX


class KnownPolls:
    """The polls that have been parsed before. Listeners and connections read the fields of this
    class directly, because a method call for each poll would cost more than the lookup.
    """

    def __init__(self) -> None:
        self.by_bytes: dict[bytes, tuple[Request, bool]] = {}
        """For the bytes of a poll, the parsed request and whether it closes its connection."""
        self.has_loopback = False
        """Whether a listener is on loopback. There, requests of foreign web pages are refused."""
        self._closing: dict[bytes, Request] = {}
        """Polls that close their connection, and that need no check except the source address."""
        self.last_bytes = b""
        """The bytes of the last poll that `find_closing` found. The next one is mostly equal."""
        self.last_request: Request | None = None

    def remember(self, raw: bytes, request: Request, *, closes: bool) -> None:
        """Remember what these bytes mean. They must be exactly one whole poll."""
        self.by_bytes[raw] = (request, closes)
        may_be_refused = request.is_foreign and self.has_loopback
        if closes and request.is_plain and not request.wait_s and not may_be_refused:
            self._closing[raw] = request

    @property
    def is_full(self) -> bool:
        return len(self.by_bytes) >= REMEMBERED_POLLS_MAX

    def find_closing(self, raw: bytes) -> Request | None:
        """Return the poll that these bytes are, if it is known and closes its connection."""
        request = self._closing.get(raw)
        if request is not None:
            self.last_bytes, self.last_request = raw, request
        return request

    def clear(self) -> None:
        """Forget all polls. Each real poller is known again after one parse."""
        self.by_bytes.clear()
        self._closing.clear()
        self.last_bytes, self.last_request = b"", None
