"""Checks the server on PostgreSQL as it is run for real: TLS, SCRAM, PgBouncer, standbys.

    python3 tools/postgres_check/check.py --install     gets the Debian packages that are missing
    python3 tools/postgres_check/check.py               one line a check; exit code 1 if one fails

Everything listens on loopback only, in folders that are made for the run. Needs no root
(`--install` does).
"""

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.debian_packages import services_kept_off
from tools.postgres_check.fail_over import check_fail_over
from tools.postgres_check.logins import check_logins
from tools.postgres_check.packages import install, missing
from tools.postgres_check.pgbouncer import check_pgbouncer
from tools.suite_check import passes

_BAD_USAGE = 2
_CHECKS: dict[str, Callable[[], list[str]]] = {
    "logins": check_logins,
    "pgbouncer": check_pgbouncer,
    "fail_over": check_fail_over,
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the server on PostgreSQL.")
    parser.add_argument("--install", action="store_true", help="first install what is missing")
    parser.add_argument("only", nargs="*", help=f"{', '.join(_CHECKS)}; all without it")
    options = parser.parse_args()
    if unknown := [name for name in options.only if name not in _CHECKS]:
        parser.error(f"no check is called {', '.join(unknown)}")
    if options.install and missing():
        subprocess.run(["apt-get", "update", "--quiet"], check=True)  # noqa: S607
        with services_kept_off():
            subprocess.run(install(), check=True)  # noqa: S603
    if missing():
        print(f"missing: {', '.join(missing())}; run: {' '.join(install())}", file=sys.stderr)
        return _BAD_USAGE
    chosen = [name for name in _CHECKS if name in (options.only or _CHECKS)]
    failed = [name for name in chosen if not passes(name, _CHECKS[name])]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
