"""Runs a whole Fairwarning server in the process of a test, on a virtual clock.

With pytest there is nothing to import: the fixture `fairwarning` is a `Server`. Elsewhere:

    from fairwarning.testing import server

    with server() as fw:
        fw.schedule("Reboot", "web-0")
        fw.advance(minutes=15)
"""

from fairwarning.testing.server import Server, server
from fairwarning.testing.virtual_machine import NotAnswered, Vm

__all__ = ["NotAnswered", "Server", "Vm", "server"]
