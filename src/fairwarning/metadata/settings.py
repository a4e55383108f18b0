"""Limits of the endpoint, and what an operator may set about it."""

from dataclasses import dataclass

HEAD_BYTES_MAX = 16 * 1024
HEADERS_MAX = 64
BODY_BYTES_MAX = 64 * 1024
START_REQUESTS_MAX = 100
PIECE_BYTES_MAX = 4 * 1024
"""So much is parsed at once: the most that one connection can do to the others in a turn."""
CHUNKED_PIECE_BYTES_MAX = 1024
"""The same of a body in chunks, which may have one byte each: then the parser calls us for each."""
WAITING_BYTES_MAX = 64 * 1024
"""A connection that has sent more than this ahead is not read from until it is parsed."""
WAIT_S_MAX = 300
REQUEST_S_MAX = 30
"""A request must be complete by then, however slowly it is sent."""
KEEP_ALIVE_S = 75
REMEMBERED_POLLS_MAX = 4_096
REMEMBERED_BYTES_MAX = 2_048
ACTIVATION_DELAY_S_MAX = 120
CONNECTIONS_PER_ADDRESS_MAX = 512
"""For one instance; loopback, where one laptop plays a whole fleet, is not limited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointRules:
    requests_per_second_max: int | None = None
    """None: 5 in a real fleet and no limit in a test fleet; 0: no limit anywhere."""
    activation_delay_s: int = 0
    unknown_version_status: int = 400
    """OpenShift's handler needs 404; Azure's pages say 400."""
    newest_version: str = ""
    """Younger api-versions are unknown, as in regions that lag behind; empty: none is."""
    holds_polls: bool = True
    """Without it `wait` is ignored, as by Azure's own endpoint, and each poll answered at once."""
    is_header_optional_on_post: bool = False
    """For old samples: no version asks for `Metadata: true` on a POST, as 2017-03-01 never did."""
    proxy_secret: str = ""
    """With it, `X-Instance-ID` and its HMAC name the instance behind a trusted proxy."""
    proxy_addresses: frozenset[str] = frozenset()
    """Only requests from here may name an instance like that."""
