"""The limits of the endpoint, and the rules that an operator may set."""

from dataclasses import dataclass

HEAD_BYTES_MAX = 16 * 1024
HEADERS_MAX = 64
BODY_BYTES_MAX = 64 * 1024
START_REQUESTS_MAX = 100
PIECE_BYTES_MAX = 4 * 1024
"""How much is parsed in one turn, so how long one connection can delay the others."""
CHUNKED_PIECE_BYTES_MAX = 1024
"""The same for a chunked body. It is less, because the parser calls us for each chunk, and a chunk
may have one byte.
"""
WAITING_BYTES_MAX = 64 * 1024
"""A connection that has sent more than this ahead is not read from until it is parsed."""
WAIT_S_MAX = 300
"""The longest `wait` that a poll may ask for."""
REQUEST_S_MAX = 30
"""A request must be complete by then, however slowly it is sent."""
KEEP_ALIVE_S = 75
"""How long a connection may stay silent between two requests."""
REMEMBERED_POLLS_MAX = 4_096
"""How many different polls are known by their bytes."""
REMEMBERED_BYTES_MAX = 2_048
"""The longest poll that is remembered."""
ACTIVATION_DELAY_S_MAX = 120
CONNECTIONS_PER_ADDRESS_MAX = 512
"""How many connections one address may have open. Loopback, where one laptop plays a whole fleet,
is not limited.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointRules:
    """What an operator may set about the endpoint."""

    requests_per_second_max: int | None = None
    """None: 5 in a real fleet and no limit in a test fleet; 0: no limit anywhere."""
    activation_delay_s: int = 0
    """How long the first request of a scope waits; Azure's takes up to two minutes."""
    unknown_version_status: int = 400
    """The status for an unknown api-version. OpenShift's handler needs 404; Azure documents 400."""
    newest_version: str = ""
    """The newest known api-version, as in regions that lag behind; empty: all are known."""
    holds_polls: bool = True
    """Whether `wait` holds a poll. If not, it is ignored, as Azure's own endpoint does."""
    is_header_optional_on_post: bool = False
    """Whether a POST needs no `Metadata: true`, for old samples; 2017-03-01 never needed it."""
    proxy_secret: str = ""
    """The secret of a trusted proxy, which signs `X-Instance-ID` with it; empty: no proxy."""
    proxy_addresses: frozenset[str] = frozenset()
    """The addresses of that proxy: only requests from there may name an instance."""
