"""A PostgreSQL that demands TLS and SCRAM, and each way in which a login can fail."""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import trustme

from fairwarning.engine.protocols import StoreDown, StoreUnusable
from fairwarning.stores.postgres import PostgresStore
from tests.support.postgres import PostgresServer
from tools.postgres_check.nodes import free_port, refusal, served
from tools.postgres_check.packages import debian_programs

_RULES = """
local   all all               trust
host    all outsider 127.0.0.1/32 reject
hostssl all all 127.0.0.1/32  scram-sha-256
"""
_PASSWORD = "not/a secret"  # noqa: S105


def check_logins() -> list[str]:
    with tempfile.TemporaryDirectory(prefix="fw-tls-") as name:
        folder = Path(name)
        trusted, other = _certificates(folder, "localhost")
        with _server(folder) as server:
            port = server.dsn().rpartition("port=")[2]
            place = f"localhost:{port}/fairwarning"
            tls = f"?sslmode=verify-full&sslrootcert={trusted}"
            _check_sources(folder, place, tls)
            refused = _check_refusals(place, tls, port, trusted, other)
    return [
        "TLS with verify-full and SCRAM; the password from a URL, --store-file, FAIRWARNING_STORE, "
        "PGPASSWORD, PGPASSFILE and passfile=",
        f"{refused} refused logins, each with one line that says what to do",
    ]


def _certificates(folder: Path, host: str) -> tuple[Path, Path]:
    """Makes the server's files, and returns the authority of its certificate and another one."""
    authority = trustme.CA()
    issued = authority.issue_cert(host)
    (folder / "cert.pem").write_bytes(issued.cert_chain_pems[0].bytes())
    key = folder / "key.pem"
    key.touch(mode=0o600)
    key.write_bytes(issued.private_key_pem.bytes())
    trusted, other = folder / "ca.pem", folder / "other-ca.pem"
    trusted.write_bytes(authority.cert_pem.bytes())
    other.write_bytes(trustme.CA().cert_pem.bytes())
    return trusted, other


@contextmanager
def _server(folder: Path) -> Iterator[PostgresServer]:
    rules = folder / "pg_hba.conf"
    rules.write_text(_RULES)
    server = PostgresServer(
        programs=debian_programs(),
        listen_addresses="localhost",
        port=str(free_port()),
        ssl="on",
        ssl_cert_file=str(folder / "cert.pem"),
        ssl_key_file=str(folder / "key.pem"),
        hba_file=str(rules),
        password_encryption="scram-sha-256",  # noqa: S106
        max_connections="20",
    )
    try:
        server.start()
        for role, options in {
            "fw": "LOGIN",
            "outsider": "LOGIN",
            "crowd": "LOGIN CONNECTION LIMIT 1",
            "noone": "NOLOGIN",
        }.items():
            server.execute(f"CREATE ROLE {role} {options} PASSWORD '{_PASSWORD}'")
        server.execute("GRANT fw TO crowd")
        server.execute("CREATE DATABASE fairwarning OWNER fw")
        yield server
    finally:
        server.remove()


def _check_sources(folder: Path, place: str, tls: str) -> None:
    """Each way to give the password lets the server start, and none of them shows it."""
    whole = f"postgresql://fw:{quote(_PASSWORD, safe='')}@{place}{tls}"
    bare = f"postgresql://fw@{place}{tls}"
    file, passes = folder / "store", folder / "passes"
    file.write_text(whole + "\n")
    passes.touch(mode=0o600)
    passes.write_text(f"*:*:*:fw:{_PASSWORD}\n")
    for options, environment in (
        (["--store", whole], {}),
        (["--store-file", str(file)], {}),
        ([], {"FAIRWARNING_STORE": whole}),
        (["--store", bare], {"PGPASSWORD": _PASSWORD}),
        (["--store", bare], {"PGPASSFILE": str(passes)}),
        (["--store", f"{bare}&passfile={passes}"], {}),
    ):
        with served(folder, "login", *options, **environment) as node:
            said = node.log.read_text() + node.text("/readyz")
        assert _PASSWORD not in said, said
        assert quote(_PASSWORD, safe="") not in said, said
        assert ("can be read by every user" in said) == (whole in options), said


def _check_refusals(place: str, tls: str, port: str, trusted: Path, other: Path) -> int:
    password = quote(_PASSWORD, safe="")
    user = f"fw:{password}"
    expected = {
        f"fw:wrong@{place}{tls}": "this user with this password",
        f"fw@{place}{tls}": "got none; give one by PGPASSFILE",
        f"nobody:{password}@{place}{tls}": "this user with this password",
        f"outsider:{password}@{place}{tls}": "change its pg_hba.conf",
        f"noone:{password}@{place}{tls}": "may not log in",
        f"crowd:{password}@{place}{tls}": "no free connection",
        f"{user}@localhost:{port}/nowhere{tls}": "CREATE DATABASE nowhere",
        f"{user}@{place}?sslmode=disable": "it wants TLS",
        f"{user}@{place}?sslmode=verify-full&sslrootcert={other}": "not signed by an authority",
        f"{user}@{place}?sslmode=verify-full&sslrootcert={other}.no": "there is no file",
        f"{user}@127.0.0.1:{port}/fairwarning?sslmode=verify-full&sslrootcert={trusted}": (
            "its certificate is not for 127.0.0.1"
        ),
        f"{user}@localhost:{free_port()}/fairwarning{tls}": "cannot be reached",
        f"{user}@no-such-host.invalid/fairwarning{tls}": "no-such-host.invalid is not known",
    }
    for rest, words in expected.items():
        said = asyncio.run(_told(f"postgresql://{rest}"))
        assert words in said, f"{words!r} is not in {said!r}"
        assert _PASSWORD not in said, said
        assert "\n" not in said, said
    # Some of them by the program itself, with its exit code.
    for rest in [*expected][:3]:
        said = refusal(FAIRWARNING_STORE=f"postgresql://{rest}")
        assert expected[rest] in said, said
    return len(expected)


async def _told(url: str) -> str:
    """Opens two stores at this URL. Returns the error of the first one that fails."""
    stores = [PostgresStore(url), PostgresStore(url)]
    try:
        for store in stores:
            await store.open()
    except StoreUnusable as problem:
        return str(problem)
    except StoreDown as problem:
        return str(problem)
    finally:
        for store in stores:
            await store.close()
    raise AssertionError(f"{url} can be opened")
