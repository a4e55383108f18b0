"""The driver `libvirt` acts on domains of libvirt: it freezes, restarts, moves and deletes them.

What was begun is kept in the metadata of the domain itself (`records.py`), so every node finds it
there. Only `libvirt_calls.py` calls libvirt, on threads of its own. The other modules are pure, or
use the small protocol in `host.py`.
"""
