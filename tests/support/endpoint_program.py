"""The real engine and endpoint as a program, with orders from standard input.

`python -m tests.support.endpoint_program --metadata HOST:PORT --fleet JSON` prints a line when it
is ready, then answers one JSON object per line: `{"schedule": "web-0", "id": null}` announces a
Reboot and `{"phase": ID}` tells how far it is. It ends when its input does.
"""

import argparse
import asyncio
import json
import sys
from typing import Any

import uvloop

from fairwarning.boot import make_engine, make_metadata_server, make_store
from fairwarning.core.commands import Schedule
from fairwarning.core.model import EventId, EventType, InstanceName, operator_actor
from fairwarning.core.resources import AvailabilitySet, Member, Place
from fairwarning.engine.clocks import SystemClock
from fairwarning.engine.protocols import Store
from fairwarning.engine.service import Engine
from fairwarning.metadata.settings import EndpointRules

ME = operator_actor("test")


async def serve(metadata: str, fleet: dict[str, dict[str, list[str]]], store_url: str) -> None:
    clock = SystemClock()
    store = make_store(store_url, clock)
    await store.open()
    engine = make_engine(store, clock)
    await engine.declare(
        [
            AvailabilitySet(
                name=name,
                members=tuple(Member(name=vm, addresses=tuple(at)) for vm, at in members.items()),
                update_domains=2,
                place=Place(test=True),
            )
            for name, members in fleet.items()
        ],
        by=ME,
    )
    host, _, port = metadata.rpartition(":")
    address = (host.strip("[]"), int(port))
    server = await make_metadata_server(engine, store, clock, [address], EndpointRules())
    await engine.start()
    server.start()
    print(json.dumps({"ready": True, "metadata": server.urls}), flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(await obey(engine, store, json.loads(line))), flush=True)
    await server.stop()
    await engine.stop()
    await store.close()


async def obey(engine: Engine, store: Store, order: dict[str, Any]) -> dict[str, str]:
    if "phase" in order:
        _, event = await store.find_event(EventId(order["phase"]))
        return {"phase": event.phase.value}
    target = InstanceName(order["schedule"])
    event_id = EventId(order.get("id") or engine.new_id())
    scopes = [await store.read(id) for id in await store.scope_ids(limit=1000)]
    scope = next(each for each in scopes if target in each.roster.instances)
    command = Schedule(event_id=event_id, type=EventType.REBOOT, targets=(target,))
    await engine.submit(scope.id, command, by=ME)
    return {"id": event_id}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metadata", required=True)
    parser.add_argument("--fleet", required=True)
    parser.add_argument("--store", default="memory:")
    options = parser.parse_args()
    uvloop.run(serve(options.metadata, json.loads(options.fleet), options.store))


if __name__ == "__main__":
    main()
