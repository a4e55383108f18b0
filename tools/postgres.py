"""Runs a command with a real PostgreSQL of its own, which comes with the extra `test`.

`python -m tools.postgres COMMAND…` puts the URL of an empty database in the place of `{url}` in
the words of the command, and removes the server when the command has ended.
"""

import subprocess
import sys
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

from tests.support.postgres import PostgresServer


def url_of(dsn: str) -> str:
    """Returns the DSN as a URL for `fairwarning serve --store`."""
    parts = {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
    return f"postgresql://{parts['user']}@/{parts['dbname']}?host={quote(parts['host'], safe='')}"


def main() -> None:
    words = sys.argv[1:]
    if not words:
        sys.exit("usage: python -m tools.postgres COMMAND… with {url} in one of its words")
    server = PostgresServer(autovacuum="on")
    try:
        server.start()
        url = url_of(server.dsn(server.create_database()))
        command = [word.replace("{url}", url) for word in words]
        code = _ended(subprocess.Popen(command))  # noqa: S603
    finally:
        server.remove()
    sys.exit(code)


def _ended(process: subprocess.Popen[bytes]) -> int:
    """Returns the exit code. After Ctrl-C the command may still need the server, so it waits."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


if __name__ == "__main__":
    main()
