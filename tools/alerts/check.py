"""Has promtool check and play the alert rules, and read the metrics of a real server.

    python3 tools/alerts/check.py --install     gets Debian's package `prometheus` if it is missing
    python3 tools/alerts/check.py               one line for each check; exit code 1 if one fails

The package is not started. Needs no root (`--install` does).
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.processes import serving

RULES = Path(__file__).resolve().parents[2] / "deploy" / "prometheus"
INSTALL = ["apt-get", "install", "--yes", "--no-install-recommends", "prometheus"]
_BAD_USAGE = 2


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the alert rules with promtool.")
    parser.add_argument("--install", action="store_true", help="first install what is missing")
    if parser.parse_args().install and shutil.which("promtool") is None:
        subprocess.run(["apt-get", "update", "--quiet"], check=True)  # noqa: S607
        subprocess.run(INSTALL, check=True)  # noqa: S603
    if shutil.which("promtool") is None:
        print(f"missing: promtool; run: {' '.join(INSTALL)}", file=sys.stderr)
        return _BAD_USAGE
    checks = (
        ("the rules are valid", ["check", "rules", str(RULES / "fairwarning.rules.yml")], ""),
        ("alerts fire in time", ["test", "rules", str(RULES / "fairwarning.rules.test.yml")], ""),
        ("the metrics of a real server are valid", ["check", "metrics"], _metrics()),
    )
    codes = [_check(*each) for each in checks]
    return max(codes)


def _check(what: str, arguments: list[str], given: str) -> int:
    done = subprocess.run(  # noqa: S603
        ["promtool", *arguments],  # noqa: S607
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    print(f"{'FAIL' if done.returncode else 'pass'}  {what}", flush=True)
    if done.returncode:
        print(done.stdout + done.stderr, flush=True)
    return 1 if done.returncode else 0


def _metrics() -> str:
    """Returns the metrics of a server with a worker, which has more of them than one without."""
    with tempfile.TemporaryDirectory(prefix="fairwarning-alerts-") as folder:
        store = f"sqlite:///{folder}/fw.db"
        with serving("--store", store, "--workers", "1", "--no-azure") as server:
            answer = httpx.get(f"{server.control}/metrics", trust_env=False, timeout=30)
            return answer.raise_for_status().text


if __name__ == "__main__":
    sys.exit(main())
