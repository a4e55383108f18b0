"""How many file descriptors this process may have."""

import resource
from contextlib import suppress


def raise_file_limit() -> None:
    """As many as the system allows: the usual limit is for programs that use `select`."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems name a limit that they do not grant.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
