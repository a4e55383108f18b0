"""Runs a whole Fairwarning server in the process of a test, on a virtual clock.

With pytest, no import is needed, because the fixture `fairwarning` is a `Server`. Without pytest:

    from fairwarning.testing import server

    with server() as fw:
        fw.schedule("Reboot", "web-0")
        fw.advance(minutes=15)
"""

from fairwarning.testing.server import Server, server
from fairwarning.testing.virtual_machine import NotAnswered, Vm

__all__ = ["NotAnswered", "Server", "Vm", "server"]
