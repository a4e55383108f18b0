"""Runs our endpoint, with orders over its standard input."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.metadata.environment import Programs
from benchmarks.metadata.server_process import Running, started, wait_until_answering
from benchmarks.metadata.settings import PATH, SERVER_HOST, SOURCES

_FLEET = {"web": {f"web-{number}": [address] for number, address in enumerate(SOURCES)}}


@contextmanager
def ours(programs: Programs) -> Iterator[Running]:
    serve = [str(programs.python), "-m", "tests.support.endpoint_program"]
    listen = ["--metadata", f"{SERVER_HOST}:0", "--fleet", json.dumps(_FLEET)]
    with started([*serve, *listen]) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["metadata"][0].removeprefix("http://")
        server = wait_until_answering(Running("ours", process.pid, address, PATH))
        process.stdin.write(json.dumps({"schedule": "web-1"}) + "\n")
        process.stdin.flush()
        process.stdout.readline()
        yield server
