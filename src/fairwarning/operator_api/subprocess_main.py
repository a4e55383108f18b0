"""The program of the processes in `subprocess_pool.py`.

It is started as `python -m fairwarning.operator_api.subprocess_main JOB`.
"""

import gc
import os
import resource
import sys
from collections.abc import Callable, Iterator
from typing import BinaryIO

NICENESS = 5  # The server in the same machine comes first.
# A process that takes more would endanger the server on a small machine.
MEMORY_BYTES_MAX = 3 * 1024**3
CPU_S_MAX = 110
"""The limit of processor time. It is below `WORK_S_MAX` of the pool, so it comes first."""
EXIT_TOO_COSTLY = 3
"""The exit code if memory runs out. If processor time runs out, SIGXCPU ends the process."""

Job = Callable[[Iterator[bytes]], Iterator[bytes]]


def find_job(name: str) -> Job:
    """Return the job of this name. Only the modules that it needs are imported."""
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
            from fairwarning.operator_api.offload import call_job  # noqa: PLC0415

            return call_job
        case _:
            raise ValueError(f"there is no job {name!r}")


def frames(source: BinaryIO) -> Iterator[bytes]:
    """Yield the frames until the empty frame that ends them, or until the input ends."""
    while length := int.from_bytes(source.read(4)):
        yield source.read(length)


def main() -> None:
    os.nice(NICENESS)
    # The process ends with its job, so looking for garbage would only take time.
    gc.disable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S_MAX, CPU_S_MAX))
    job = find_job(sys.argv[1])
    out = sys.stdout.buffer
    try:
        for frame in job(frames(sys.stdin.buffer)):
            out.write(len(frame).to_bytes(4))
            out.write(frame)
            # The server may wait for this frame before it sends the next.
            out.flush()
        out.write(bytes(4))
        out.flush()
    except MemoryError:
        os._exit(EXIT_TOO_COSTLY)


if __name__ == "__main__":
    main()
