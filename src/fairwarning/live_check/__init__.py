"""The live check runs real server processes under load, and checks what they really did.

`python -m fairwarning.live_check` starts `fairwarning serve` on a real store with a `command`
driver, lets instances poll and approve and callers schedule, cancel and operate, kills servers
in between, and compares the records of everybody with the history, promise by promise.

It knows the program only from outside: the command line, the operator API, the metadata
endpoint and the driver's side of docs/drivers.md. It imports nothing of the server.
"""
