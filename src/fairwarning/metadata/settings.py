"""The limits of the endpoint, and the rules that an operator can set."""

from dataclasses import dataclass

HEAD_BYTES_MAX = 16 * 1024  # Far more than any client sends.
HEADERS_MAX = 64  # Far more than any client sends.
BODY_BYTES_MAX = 64 * 1024  # A hundred approvals take about 5 KiB.
START_REQUESTS_MAX = 100  # As many as a scope can have instances.
PIECE_BYTES_MAX = 4 * 1024
"""How many bytes are parsed in one turn. It limits how long one connection delays the others."""
CHUNKED_PIECE_BYTES_MAX = 1024
"""How many bytes of a chunked body are parsed in one turn: few, because each chunk costs a call."""
WAITING_BYTES_MAX = 64 * 1024
"""If more bytes than this wait to be parsed, nothing more is read from the connection."""
WAIT_S_MAX = 300
"""The longest `wait` of a poll. Firewalls cut connections that are silent for longer."""
REQUEST_S_MAX = 30
"""How long a client may take to send a whole request, so that slow senders do not pile up."""
KEEP_ALIVE_S = 75
"""How long a connection may stay silent. It is longer than clients pause between two polls."""
REMEMBERED_POLLS_MAX = 4_096
"""How many polls are remembered: a few for each kind of client, and at most 8 MiB."""
REMEMBERED_BYTES_MAX = 2_048
"""The most bytes of a poll that is remembered. Real polls have a few hundred."""
ACTIVATION_DELAY_S_MAX = 120  # Azure says that it may take up to two minutes.
CONNECTIONS_PER_ADDRESS_MAX = 512
"""How many connections an address may have, unless it is a proxy's or on loopback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointRules:
    """The settings of the endpoint that an operator can change."""

    requests_per_second_max: int | None = None
    """The rate limit of an instance. 0: no limit. None: 5, but no limit in a test fleet."""
    activation_delay_s: int = 0
    """How long the first request of a scope waits. In Azure it may take up to two minutes."""
    unknown_version_status: int = 400
    """The status for an unknown api-version. OpenShift's handler needs 404; Azure documents 400."""
    newest_version: str = ""
    """The newest api-version that is accepted, as in regions that lag behind. Empty means all that
    Azure documents; 2024-07-09 must be named here."""
    holds_polls: bool = True
    """Whether `wait` holds a poll. If false, `wait` is ignored, as in Azure."""
    is_header_optional_on_post: bool = False
    """Whether approvals need no `Metadata: true`, for old samples. 2017-03-01 never needs it."""
    stale_s_max: float | None = 300.0
    """How old documents may be that are served while the store is away. None means any age. The
    default is the shortest notice that a scale set can have for its deletes.
    """
    store_s_max: float | None = None
    """How long an instance waits for the store before it gets 503. None means without a limit."""
    proxy_secret: str = ""
    """The secret with which a trusted proxy signs `X-Instance-ID`. Empty means no proxy."""
    proxy_addresses: frozenset[str] = frozenset()
    """The addresses of the proxy. Only its requests may name an instance in `X-Instance-ID`."""
