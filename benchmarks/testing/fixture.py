"""Measures the pytest fixture: start, a whole lifecycle, stop; beside a bare server.

The peer is what a test would otherwise write: `http.server` in a thread with a canned
document, polled once.
"""

import http.server
import json
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable

from fairwarning.testing import Server

ROUNDS = 30
LIMITS_MS = {"start": 300.0, "lifecycle": 20.0, "stop": 100.0}
DOCUMENT = json.dumps({"DocumentIncarnation": 1, "Events": []}).encode()


class Canned(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(DOCUMENT)

    def log_message(self, format: str, *args: object) -> None:
        pass


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def lifecycle(server: Server) -> None:
    """Runs an event that nobody approves, from its announcement to its end."""
    event = server.schedule("Reboot", "web-0")
    server.advance(minutes=15)
    assert server.event(event).phase == "started"
    server.advance(minutes=1)
    assert server.event(event).phase == "completed"


def round_of_ours() -> dict[str, float]:
    servers: list[Server] = []
    start = timed(lambda: servers.append(Server()))
    server = servers[0]
    poll = timed(server.vm("web-0").document)
    life = timed(lambda: lifecycle(server))
    return {"start": start, "poll": poll, "lifecycle": life, "stop": timed(server.stop)}


def round_of_bare() -> dict[str, float]:
    began = time.perf_counter()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Canned)
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01))
    thread.start()
    start = (time.perf_counter() - began) * 1000
    url = f"http://127.0.0.1:{server.server_port}/"
    poll = timed(lambda: urllib.request.urlopen(url).read())

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return {"start": start, "poll": poll, "stop": timed(stop)}


def import_ms() -> float:
    """Returns the time of the import, once in each process."""

    def best(code: str) -> float:
        command = [sys.executable, "-c", code]
        return min(timed(lambda: subprocess.run(command, check=True)) for _ in range(3))

    return best("import fairwarning.testing") - best("")


def main() -> None:
    ours = [round_of_ours() for _ in range(ROUNDS)]
    bare = [round_of_bare() for _ in range(ROUNDS)]
    print(f"{'ms':<10}{'median':>8}{'worst':>8}{'limit':>8}{'bare':>8}{'ratio':>8}")
    for part in ours[0]:
        found = [each[part] for each in ours]
        median = statistics.median(found)
        limit = f"{LIMITS_MS[part]:.0f}" if part in LIMITS_MS else ""
        peer = statistics.median(each[part] for each in bare) if part in bare[0] else None
        beside = f"{peer:>8.2f}{median / peer:>8.1f}" if peer else ""
        print(f"{part:<10}{median:>8.2f}{max(found):>8.2f}{limit:>8}{beside}")
    print(f"import    {import_ms():>8.0f}  once in each process")


if __name__ == "__main__":
    main()
