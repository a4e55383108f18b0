"""Polls the server in the machine all the time, and counts what fails.

    python3 poll.py FOLDER

Two clients keep their connection as long as the server does, and two make a new one for each poll.
`polls` in the folder has the number of answers, and `failures` a line for each poll that failed.
"""

import http.client
import sys
import threading
import time
from pathlib import Path

PATH = "/vm/db/metadata/scheduledevents?api-version=2020-07-01"
PAUSE_S = 0.2  # Often enough to meet every moment of a restart.
PATIENCE_S = 600  # It only ends a hang; an emulated machine is slow.

folder = Path(sys.argv[1])
answered = [0, 0, 0, 0]


def poll(number: int, keeps: bool) -> None:
    client: http.client.HTTPConnection | None = None
    while True:
        client = client or http.client.HTTPConnection("127.0.0.1", 80, timeout=PATIENCE_S)
        try:
            headers = {"Metadata": "true"} | ({} if keeps else {"Connection": "close"})
            client.request("GET", PATH, headers=headers)
            answer = client.getresponse()
            answer.read()
            assert answer.status == 200, answer.status
            answered[number] += 1
            if not keeps or answer.getheader("Connection") == "close":
                client.close()
                client = None
        except Exception as error:
            kind = "kept" if keeps else "new"
            with open(folder / "failures", "a") as failures:
                failures.write(f"{kind} {error!r}\n")
            client = None
        time.sleep(PAUSE_S)


for number in range(4):
    threading.Thread(target=poll, args=(number, number < 2), daemon=True).start()
while True:
    (folder / "polls.new").write_text(str(sum(answered)))
    (folder / "polls.new").replace(folder / "polls")
    time.sleep(0.2)
