"""The process of `side_process.py`: `python -m fairwarning.operator_api.side_jobs JOB`."""

import os
import resource
import sys
from collections.abc import Callable, Iterator
from typing import BinaryIO

NICENESS = 5
MEMORY_BYTES_MAX = 3 * 1024**3
CPU_S_MAX = 110
EXIT_TOO_COSTLY = 3
"""The memory was not enough. Too much time of the processor ends it by a signal."""

Job = Callable[[Iterator[bytes]], Iterator[bytes]]


def job_called(name: str) -> Job:
    """Loads only what the job needs."""
    match name:
        case "fleet":
            from fairwarning.operator_api.fleet_plans import fleet_job  # noqa: PLC0415

            return fleet_job
        case "arm":
            from fairwarning.azure_api.lenient_json import json_job  # noqa: PLC0415

            return json_job
        case "template":
            from fairwarning.azure_api.templates.template_job import (  # noqa: PLC0415
                serve_template_job,
            )

            return serve_template_job
        case "call":
            from fairwarning.operator_api.long_work import call_job  # noqa: PLC0415

            return call_job
        case _:
            raise ValueError(f"there is no job {name!r}")


def frames(source: BinaryIO) -> Iterator[bytes]:
    """Whoever hangs up ends them too: then nobody waits for what comes of them."""
    while length := int.from_bytes(source.read(4)):
        yield source.read(length)


def main() -> None:
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S_MAX, CPU_S_MAX))
    job = job_called(sys.argv[1])
    out = sys.stdout.buffer
    try:
        for frame in job(frames(sys.stdin.buffer)):
            out.write(len(frame).to_bytes(4))
            out.write(frame)
            # Somebody may wait for this one before he sends the next.
            out.flush()
        out.write(bytes(4))
        out.flush()
    except MemoryError:
        os._exit(EXIT_TOO_COSTLY)


if __name__ == "__main__":
    main()
