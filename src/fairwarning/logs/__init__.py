"""Logs: a line for each transition and for whatever needs a look, for people or as JSON."""

import logging
import sys

from fairwarning.logs.buffered_handler import TurnHandler
from fairwarning.logs.commit_messages import log_commit
from fairwarning.logs.formats import Human, Json

__all__ = ["FORMATS", "log_commit", "set_up"]

FORMATS = ("human", "json")


def set_up(form: str, level: str) -> None:
    handler = TurnHandler(sys.stderr)
    handler.setFormatter(Json() if form == "json" else Human())
    # None of our lines shows these, and each is asked for with every line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for noisy in ("httpx", "httpcore", "apprise", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # Its warnings are about what clients send, and those are answered.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
