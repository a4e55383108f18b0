"""The document, source addresses and cores of all peers; only loopback addresses."""

import os

SERVER_HOST = "127.0.0.1"
SOURCES = tuple(f"127.0.1.{number}" for number in range(1, 33))
"""The source addresses of clients, so that the look-up by address is a real one."""
CONNECTIONS = 32
PATH = "/metadata/scheduledevents?api-version=2020-07-01"
DOCUMENT = (
    b'{"DocumentIncarnation":2,"Events":[{"EventId":"4CAEA225-A741-474D-A72E-428C86FCD853",'
    b'"EventStatus":"Scheduled","EventType":"Reboot","ResourceType":"VirtualMachine",'
    b'"Resources":["web-1"],"NotBefore":"Thu, 22 Jul 2027 04:50:17 GMT",'
    b'"Description":"Host server is undergoing maintenance.","EventSource":"Platform",'
    b'"DurationInSeconds":-1}]}'
)
"""What the peers serve without ours; else they serve the same bytes as ours."""


def cores() -> tuple[int, int]:
    """Returns the cores of the server and the load; with one core, times mean little."""
    available = sorted(os.sched_getaffinity(0))
    return available[0], available[min(1, len(available) - 1)]
