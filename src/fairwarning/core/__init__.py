"""The core has the rules. It uses no clock, no random source, no file and no socket.

The caller passes in the time and new ids. The only exception that the core raises is Refused.
"""
