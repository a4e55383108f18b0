"""The log has a line for each transition and for each problem, for people or as JSON."""

import logging
import sys

from fairwarning.logs.buffered_handler import BufferedHandler
from fairwarning.logs.formats import HumanFormatter, JsonFormatter, log_commit

__all__ = ["FORMATS", "log_commit", "set_up"]

FORMATS = ("human", "json")


def set_up(form: str, level: str) -> None:
    """Sends all log lines to standard error. `form` is one of FORMATS."""
    handler = BufferedHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else HumanFormatter())
    # Our lines show neither thread nor process, and to look them up would cost time for each line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for noisy in ("httpx", "httpcore", "apprise", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # uvicorn's warnings are about bad requests, and those clients get an error as the answer.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
