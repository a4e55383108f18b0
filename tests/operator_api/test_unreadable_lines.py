"""What operators are shown of a line that this version cannot read."""

import asyncio
import json
import sqlite3
from pathlib import Path

from tests.operator_api.rig import Rig, running
from tests.operator_api.test_stream import read
from tests.support.patience import HANG_S

SECRET = "hunter2"


def append(path: Path, event: str) -> None:
    """As a newer version would, behind the node's back."""
    body = json.dumps({"event_id": event, "driver_settings": {"password": SECRET}})
    with sqlite3.connect(path) as connection:
        connection.execute(
            "INSERT INTO journal (scope_id, revision, at_ms, actor_kind, actor_name, why, kind, "
            "event_id, body) VALUES ('', 99, 0, 'operator', 'newer', '', 'Exploded', ?, ?)",
            (event, body),
        )
    connection.close()


async def test_it_is_shown_by_its_name_and_without_its_content(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with running(store_url=f"sqlite:///{path}") as rig:
        event = (await rig.schedule("web-0"))["id"]
        append(path, event)
        await rig.schedule("web-1")
        history = (await rig.get("/history"))["entries"]
        line = next(each for each in history if each["kind"] == "Exploded")
        assert line["text"] == "Exploded (this version cannot read such a line)"
        assert line["event"] == event
        assert SECRET not in json.dumps(history)
        timeline = (await rig.get(f"/events/{event}"))["timeline"]
        assert "Exploded" in [each["kind"] for each in timeline]
        after = history[-1]["position"]
        streamed = await read(rig, len(history) - 1, last_event_id=after)
        assert streamed == history[:-1][::-1]


async def test_notifications_come_past_it(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with running(store_url=f"sqlite:///{path}") as rig:
        received: asyncio.Queue[bytes] = asyncio.Queue()

        async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length:")
            )
            await received.put(await reader.readexactly(length))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(receive, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        await _add_target(rig, url)
        event = (await rig.schedule("web-0"))["id"]
        async with asyncio.timeout(HANG_S):
            assert event.encode() in await received.get()
            append(path, event)
            await rig.post(f"/events/{event}/cancel")
            told = json.loads(await received.get())
        # What came before cannot all be read, so the event is told as it is now.
        assert (told["data"]["event"]["id"], told["data"]["event"]["phase"]) == (event, "cancelled")
        server.close()
        await server.wait_closed()


async def _add_target(rig: Rig, url: str) -> None:
    await rig.post("/notifications", {"name": "hook", "kind": "webhook", "url": url}, 201)
