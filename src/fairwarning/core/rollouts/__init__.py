"""A rollout does maintenance on many scopes, one update domain at a time.

Start with `model.py`, then read `advance.py` (what to do next) and `windows.py` (when it may be
done).
"""
