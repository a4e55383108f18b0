"""The engine runs commands as transactions on scopes, keeps timers, calls drivers, and has a change
feed. Nothing else changes scopes.
"""
