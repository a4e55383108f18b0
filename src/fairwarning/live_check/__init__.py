"""The live check runs real server processes under load, and checks what they really did.

`python -m fairwarning.live_check` starts `fairwarning serve` on a real store with a `command`
driver. Instances poll and approve, callers schedule, cancel and operate, and servers are killed in
between. Then it compares the records of callers, instances and driver with the history, one promise
after the other.

It uses the program only from outside: the command line, the operator API, the metadata endpoint,
and the driver's interface in docs/drivers.md. It imports nothing of the server.
"""
