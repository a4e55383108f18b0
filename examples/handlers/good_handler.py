#!/usr/bin/env python3
"""A handler of scheduled events that does everything right, with nothing but Python.

It drains before an event that concerns this VM, approves, and undoes when the event is gone,
also after its own reboot. Put your own work into `drain` and `undo`. `fairwarning check --
python3 good_handler.py` runs all its cases with it.
"""

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from pathlib import Path

URL = os.environ.get("FAIRWARNING_METADATA_URL", "http://169.254.169.254")
VERSIONS = ["2020-07-01", "2019-08-01", "2019-01-01", "2017-11-01"]  # the first that is known
POLL_S = 1.0  # an eviction gives 30 seconds
TIMEOUT_S = 10.0
FIRST_TIMEOUT_S = 150.0  # the first call of a VM may take two minutes
SOON_S = 3600.0  # to approve is to have it now, so leave what is further away alone
DOUBTS_MAX = 5  # so many old documents in a row are no accident: the service began anew
STATE = Path(os.environ.get("FAIRWARNING_CHECK_STATE", "/var/lib/my-handler"), "drained.json")
LOG = os.environ.get("FAIRWARNING_CHECK_LOG")

# The endpoint is on this machine's own link: never through a proxy.
plain = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def drain(event):
    note("drain", event)


def undo(event):
    note("undo", event)


def note(word, event):
    print(word, event, flush=True)
    if LOG:
        with open(LOG, "a") as file:
            file.write(f"{word} {event}\n")


class Endpoint:
    def __init__(self):
        self.versions = [*VERSIONS]
        self.timeout_s = FIRST_TIMEOUT_S
        self.ahead = timedelta()  # of our own clock, which may be wrong

    def document(self):
        """What is announced; None if nobody can tell at the moment."""
        try:
            body = self.ask(f"scheduledevents?api-version={self.versions[0]}")
            found = json.loads(body)
            return found if isinstance(found.get("Events"), list) else None
        except urllib.error.HTTPError as error:
            if error.code in (400, 404) and len(self.versions) > 1:
                del self.versions[0]
            print("the endpoint answered", error.code, flush=True)
        except (OSError, ValueError, AttributeError, http.client.HTTPException) as error:
            print("no document:", error, flush=True)
        return None

    def name(self):
        """As Resources has it. On scale sets the hostname is another."""
        while True:
            try:
                return json.loads(self.ask("instance?api-version=2021-02-01"))["compute"]["name"]
            except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
                print("who am I?", error, flush=True)
                time.sleep(POLL_S)

    def approve(self, event):
        body = json.dumps({"StartRequests": [{"EventId": event}]}).encode()
        try:
            self.ask(f"scheduledevents?api-version={self.versions[0]}", body)
            return True
        except (OSError, http.client.HTTPException) as error:
            print("not approved, will try again:", error, flush=True)
            return False

    def ask(self, path, body=None):
        headers = {"Metadata": "true"}
        request = urllib.request.Request(f"{URL}/metadata/{path}", data=body, headers=headers)
        with plain.open(request, timeout=self.timeout_s) as answer:
            self.timeout_s = TIMEOUT_S
            if answer.headers["Date"]:
                now = datetime.now(timezone.utc)
                self.ahead = parsedate_to_datetime(answer.headers["Date"]) - now
            return answer.read()


def seconds_left(event, ahead):
    text = event.get("NotBefore") or ""
    for read in (
        parsedate_to_datetime,
        lambda text: datetime.fromisoformat(text.replace("Z", "+00:00")),
        lambda text: datetime.strptime(text, "%m/%d/%Y %I:%M:%S %p %z"),  # as .NET writes it
    ):
        try:
            return (read(text) - datetime.now(timezone.utc) - ahead).total_seconds()
        except (ValueError, TypeError):
            continue
    return 0.0  # started, or a date that nobody can read: act now


class Memory:
    """What was drained for, on disk, because the event may well be our own reboot."""

    def __init__(self):
        STATE.parent.mkdir(parents=True, exist_ok=True)
        self.drained = json.loads(STATE.read_text()) if STATE.exists() else []
        self.approved = set()
        self.incarnation = 0
        self.doubts = 0
        self.known = []

    def believed(self, document):
        """The events of the document. An old document, as of a cache, takes none away."""
        is_old = document["DocumentIncarnation"] < self.incarnation
        self.doubts = self.doubts + 1 if is_old else 0
        if is_old and self.doubts < DOUBTS_MAX:
            shown = {each["EventId"] for each in document["Events"]}
            kept = [each for each in self.known if each["EventId"] not in shown]
            return document["Events"] + kept
        self.incarnation, self.known = document["DocumentIncarnation"], document["Events"]
        return document["Events"]

    def save(self):
        new = STATE.with_suffix(".new")
        new.write_text(json.dumps(self.drained))
        new.replace(STATE)


def step(endpoint, memory, me, events):
    mine = {each["EventId"]: each for each in events if me in each.get("Resources", [])}
    for id, event in mine.items():
        is_started = event.get("EventStatus") == "Started"
        is_near = is_started or seconds_left(event, endpoint.ahead) < SOON_S
        if id not in memory.drained and is_near:
            memory.drained.append(id)
            memory.save()
            drain(id)
        # Of several VMs the first speaks for all; add your own way to know that all are ready.
        speaks = event["Resources"][0] == me
        is_waiting = id in memory.drained and id not in memory.approved and not is_started
        if is_waiting and speaks and endpoint.approve(id):
            memory.approved.add(id)
    for id in [each for each in memory.drained if each not in mine]:
        undo(id)
        memory.drained.remove(id)
        memory.save()


def main():
    endpoint, memory = Endpoint(), Memory()
    me = endpoint.name()
    while True:
        document = endpoint.document()
        if document is not None:
            step(endpoint, memory, me, memory.believed(document))
        time.sleep(POLL_S)


if __name__ == "__main__":
    main()
