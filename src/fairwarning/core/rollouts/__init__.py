"""A rollout takes maintenance through many scopes, one update domain at a time. Pure, like the
rest.

Start with `model.py`, then `advance.py` (what to do next) and `windows.py` (when it may be done).
"""
