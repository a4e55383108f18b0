"""Runs the server under check, with two scopes of one address each, so that a mix-up shows.

Each sample gets a server of its own: an event id is scheduled at most once in a server's life.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager

from tests.support.endpoint_process import Server, serving_endpoint
from tests.support.namespaces import ENDPOINT

WEB = "web-0"
DB = "db"
VMS = {WEB: "10.77.0.11", DB: "10.77.0.12"}
_FLEET = {"web": {WEB: [VMS[WEB]]}, "data": {DB: [VMS[DB]]}}

__all__ = ["DB", "VMS", "WEB", "Server", "sample_server"]


def sample_server(serve: Sequence[str]) -> AbstractContextManager[Server]:
    return serving_endpoint(_FLEET, f"{ENDPOINT}:80", serve)
