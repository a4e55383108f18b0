"""Why a connection failed, in words for people. Pure."""

import os


def reason(problem: OSError) -> str:
    """asyncio puts its own words and the address where the reason would be."""
    if problem.errno is not None and problem.errno > 0:
        return os.strerror(problem.errno)
    return problem.strerror or type(problem).__name__
