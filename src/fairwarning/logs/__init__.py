"""Sets up the log: a line for each transition and for each problem, for people or as JSON."""

import logging
import sys

from fairwarning.logs.buffered_handler import BufferedHandler
from fairwarning.logs.commit_messages import log_commit
from fairwarning.logs.formats import HumanFormatter, JsonFormatter

__all__ = ["FORMATS", "log_commit", "set_up"]

FORMATS = ("human", "json")


def set_up(form: str, level: str) -> None:
    """Sends all log lines to standard error; `form` is one of FORMATS."""
    handler = BufferedHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else HumanFormatter())
    # No line of ours shows these, and logging would look each of them up for every line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for noisy in ("httpx", "httpcore", "apprise", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # Its warnings are about bad requests of clients, who get an answer anyway.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
