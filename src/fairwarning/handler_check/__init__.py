"""The handler check runs a handler of scheduled events through a set of cases.

Theory of operation. Each case runs in a process of its own (`worker`), with a private server on
a virtual clock and a fresh handler process, in a network namespace where the system allows it.
The handler is observed from outside: what it requests and approves, whether it keeps running,
and what it writes into its log if it writes one. `run` starts many workers at once and collects
their results; `reports` prints them.
"""
