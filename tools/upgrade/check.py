"""Upgrades nodes under load: first all run the version before the newest migration, then this one.

    ./test upgrade                                  45 s of load
    python3 tools/upgrade/check.py --for 10m        more of it

The older version comes from the repository's own history, so this needs a clone with its history.
Both versions share one real PostgreSQL. The live check schedules, approves and polls, restarts one
node after the other as the new version, and compares what everybody saw. Exit code 0 if nothing
was lost or done twice, 1 if something was, 2 if something is missing.
"""

import argparse
import math
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fairwarning.live_check.records import Records, read_folder
from tests.support.postgres import PostgresServer
from tools.postgres import url_of
from tools.upgrade.older_version import ROOT, NoHistory, commit_before_newest, extract, newest_in
from tools.upgrade.outgrown import check_outgrown_node

_MISSING = 2
_OK = 200
_DONE = (200, 201, 202)
_NOT_STORED = ("store-down", "node-outdated")
_ENDS = ("killed", "stopped")


def main() -> int:
    parser = argparse.ArgumentParser(description="Upgrade nodes under load.")
    parser.add_argument("--for", dest="load", default="45s", help="how long there is load")
    options = parser.parse_args()
    try:
        commit = commit_before_newest()
    except NoHistory as problem:
        print(f"upgrade: {problem}", file=sys.stderr)
        return _MISSING
    with tempfile.TemporaryDirectory(prefix="fw-upgrade-") as folder:
        older = extract(commit, Path(folder))
        before, newest = newest_in(Path(folder)), newest_in(ROOT)
        print(f"from schema {before} (commit {commit[:12]}) to schema {newest}", flush=True)
        server = PostgresServer(autovacuum="on")
        try:
            server.start()
            went_well = _upgrade(server, older, Path(folder) / "records", options.load)
            went_well &= check_outgrown_node(server)
        finally:
            server.remove()
    return 0 if went_well else 1


def _upgrade(server: PostgresServer, older: Path, records: Path, load: str) -> bool:
    """Runs the live check, and then checks that both versions were asked at the same time."""
    url = url_of(server.dsn(server.create_database()))
    words = ["--store", url, "--nodes", "4", "--for", load, "--kill-every", "8s"]
    folders = ["--upgrade-from", str(older), "--folder", str(records)]
    live_check = [sys.executable, "-m", "fairwarning.live_check", *words, *folders]
    if subprocess.run(live_check, cwd=ROOT, check=False).returncode:  # noqa: S603
        return False
    found = read_folder(records / "round-0001")
    beside = _asked_beside(found)
    for version, counts in beside.items():
        said = ", ".join(f"{count} {what}" for what, count in counts.items())
        print(f"{version} version, while both ran: {said}")
    is_enough = all(count for counts in beside.values() for count in counts.values())
    if not is_enough:
        print("upgrade: one of the versions had nothing to do; give it longer with --for")
    refused = _not_stored(found)
    for node, count in refused.items():
        version = "newer" if _is_new(node) else "older"
        print(f"upgrade: {node}, of the {version} version, could not store {count} changes")
    return is_enough and not refused


def _not_stored(records: Records) -> dict[str, int]:
    """Counts the changes that each node could not store. The database was never away, so such a
    node does not get along with the schema.
    """
    return Counter(
        request.node
        for request in records.requests
        if (request.answer or {}).get("code") in _NOT_STORED
    )


def _asked_beside(records: Records) -> dict[str, dict[str, int]]:
    """Counts what each version answered between the start of the first new process and the end of
    the last old one. The first process of a node is of the older version.
    """
    started = [c.at.mono_s for c in records.nodes if _is_new(c.node) and c.change == "ready"]
    ended = [c.at.mono_s for c in records.nodes if not _is_new(c.node) and c.change in _ENDS]
    first_s, last_s = min(started, default=math.inf), max(ended, default=-math.inf)
    kinds: dict[str, list[tuple[str, float]]] = {
        "changes": [(e.node, e.sent.mono_s) for e in records.requests if e.status in _DONE],
        "approvals": [(e.node, e.sent.mono_s) for e in records.approvals if e.status == _OK],
        "polls": [(e.node, e.sent.mono_s) for e in records.polls if e.status == _OK],
    }
    return {
        version: {
            what: sum(_is_new(node) == is_new and first_s < at_s < last_s for node, at_s in made)
            for what, made in kinds.items()
        }
        for version, is_new in (("the older", False), ("the newer", True))
    }


def _is_new(node: str) -> bool:
    return not node.endswith(".1")


if __name__ == "__main__":
    sys.exit(main())
