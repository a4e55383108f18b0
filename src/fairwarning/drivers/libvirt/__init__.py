"""The driver `libvirt` acts on domains of libvirt: it freezes, restarts, moves and deletes them.

What was begun is kept in the metadata of the domain itself (`records.py`), so every node finds it
there. The other modules are pure or speak to a small protocol (`host.py`); only `binding.py` calls
libvirt, on threads of its own.
"""
