"""The handler check: stories that a handler of scheduled events must come through.

Theory of operation. Each story is played by a process of its own (`inside`), with a private
server on a virtual clock and a fresh handler process, in a network of its own where the system
allows it. What the handler does is seen from outside: what it asks and approves, whether it
lives, and what it writes into a log if it cares to. `audience` plays many at once and collects
what became of them; `reports` tells it.
"""
