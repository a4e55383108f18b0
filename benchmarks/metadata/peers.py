"""Runs the peers; each gives every known source address its ready document, and no more."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from benchmarks.metadata.environment import Programs
from benchmarks.metadata.server_process import Running, free_port, started, wait_until_answering
from benchmarks.metadata.settings import PATH, SERVER_HOST, SOURCES

_NGINX = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr crit;
{user}
events {{ worker_connections 20000; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
{temporary}
  map_hash_bucket_size 64;
  map $remote_addr $document {{
    default "";
{known}
  }}
  server {{
    listen {address}{deferred};
    location = /metadata/scheduledevents {{
      default_type "application/json; charset=utf-8";
      add_header x-ms-request-id 11111111-2222-3333-4444-555555555555;
      if ($document = "") {{ return 404; }}
      return 200 $document;
    }}
  }}
}}
"""


class Start(Protocol):
    def __call__(
        self, programs: Programs, folder: Path, document: bytes
    ) -> AbstractContextManager[Running]: ...


@contextmanager
def nginx(programs: Programs, folder: Path, document: bytes) -> Iterator[Running]:
    with run_nginx(programs.nginx, folder, document) as server:
        yield server


@contextmanager
def nginx_deferred(programs: Programs, folder: Path, document: bytes) -> Iterator[Running]:
    with run_nginx(programs.nginx, folder, document, is_deferred=True) as server:
        yield server


@contextmanager
def run_nginx(
    program: Path, folder: Path, document: bytes, *, is_deferred: bool = False
) -> Iterator[Running]:
    name = "nginx-deferred" if is_deferred else "nginx"
    home = folder / name
    home.mkdir()
    address = f"{SERVER_HOST}:{free_port()}"
    settings = home / "nginx.conf"
    settings.write_text(
        _NGINX.format(
            folder=home,
            temporary=_temporary(program, home),
            user="user root;" if os.geteuid() == 0 else "",
            known="\n".join(f"    {each} '{document.decode()}';" for each in SOURCES),
            address=address,
            deferred=" deferred" if is_deferred else "",
        )
    )
    command = [str(program), "-p", str(home), "-c", str(settings)]
    with started(command) as process:
        yield wait_until_answering(Running(name, process.pid, address, PATH))


def _temporary(program: Path, home: Path) -> str:
    """Returns the settings of temporary folders; nginx refuses those of modules that it lacks."""
    built = subprocess.run([program, "-V"], capture_output=True, check=True, text=True).stderr
    modules = ["proxy", "fastcgi", "uwsgi", "scgi"]
    has = [each for each in modules if f"--without-http_{each}_module" not in built]
    return "\n".join(f"  {each}_temp_path {home}/{each};" for each in ["client_body", *has])


@contextmanager
def go(programs: Programs, folder: Path, document: bytes) -> Iterator[Running]:
    address = f"{SERVER_HOST}:{free_port()}"
    options = ["-listen", address, "-document", str(_saved(folder, document))]
    command = [str(programs.go_peer), *options, "-sources", ",".join(SOURCES)]
    with started(command, env={**os.environ, "GOMAXPROCS": "1"}) as process:
        yield wait_until_answering(Running("go", process.pid, address, PATH))


@contextmanager
def flask(programs: Programs, folder: Path, document: bytes) -> Iterator[Running]:
    port = free_port()
    script = Path(__file__).with_name("flask_mock.py")
    options = [SERVER_HOST, str(port), str(_saved(folder, document)), ",".join(SOURCES)]
    with started([str(programs.python), str(script), *options]) as process:
        yield wait_until_answering(Running("flask", process.pid, f"{SERVER_HOST}:{port}", PATH))


def _saved(folder: Path, document: bytes) -> Path:
    file = folder / "document.json"
    file.write_bytes(document)
    return file


PEERS: dict[str, Start] = {
    "nginx": nginx,
    "nginx-deferred": nginx_deferred,
    "go": go,
    "flask": flask,
}
