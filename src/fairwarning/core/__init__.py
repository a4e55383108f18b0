"""The rules, pure: no clock, no random source, no file, no socket.

Time and ids come in with the call. The core cannot fail; it can only refuse.
"""
