"""Runs a command as the child of process 1, and takes in every process that loses its parent.

Without it, the process of a guest that has ended would stay, and libvirt would wait for its end.
"""

import os
import sys


def main() -> int:
    child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
