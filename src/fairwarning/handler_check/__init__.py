"""The handler check runs a handler of scheduled events through a set of cases.

Each case runs in its own process (`worker`), with a private server on a virtual clock and a new
handler process. They are in a network namespace if the system allows it. The check observes the
handler from outside: its requests and approvals, whether it keeps running, and its log if it
writes one. `run` starts many workers at once and collects their results; `reports` prints them.
"""
