"""Each trouble with PostgreSQL is told apart from the others, in one line that says what to do."""

import psycopg
import pytest

from fairwarning.engine.protocols import StoreDown, StoreUnusable
from fairwarning.stores.postgres import PostgresStore
from fairwarning.stores.postgres.errors import diagnose, explained
from tests.support.postgres import PostgresServer

AT = 'connection failed: connection to server at "10.0.0.9", port 5432 failed: '
UNENCRYPTED = 'no pg_hba.conf entry for host "10.0.0.9", user "fw", database "fw", no encryption'


@pytest.mark.parametrize(
    ("state", "advice", "is_temporary"),
    [
        ("08006", "check that it runs", True),
        ("25006", "name the primary", True),
        ("28P01", "check user and password", False),
        ("3D000", "no database", False),
        ("40P01", "ask again", True),
        ("42501", "grant it", False),
        ("53100", "disk is full", True),
        ("53300", "max_connections", True),
        ("53200", "out of memory or connections", True),
        ("55P03", "a lock was not free", True),
        ("57014", "took too long", True),
        ("57P01", "once it is up", True),
        ("XX001", "restore a backup", False),
        ("42P01", "SQLSTATE 42P01", False),
    ],
)
def test_a_state_says_what_to_do(state: str, advice: str, is_temporary: bool) -> None:
    found = explained(psycopg.errors.lookup(state)("no"))
    assert advice in str(found)
    assert isinstance(found, StoreDown)
    assert isinstance(found, StoreUnusable) is not is_temporary


@pytest.mark.parametrize(
    ("text", "advice", "is_temporary"),
    [
        (
            'FATAL:  password authentication failed for user "fw"\n'
            + AT
            + "FATAL:  "
            + UNENCRYPTED,
            "this user with this password",
            False,
        ),
        ("FATAL:  SASL authentication failed", "this user with this password", False),
        ("fe_sendauth: no password supplied", "PGPASSFILE", False),
        ("FATAL:  " + UNENCRYPTED, "wants TLS", False),
        ('FATAL:  no pg_hba.conf entry for host "h", SSL encryption', "pg_hba.conf", False),
        ('FATAL:  database "nodb" does not exist', "CREATE DATABASE nodb", False),
        ("FATAL:  no such database: nodb", "[databases]", False),
        ('FATAL:  role "joe" does not exist', "CREATE ROLE joe", False),
        ("FATAL:  no such user: joe", "auth_file", False),
        ('FATAL:  role "joe" is not permitted to log in', "may not log in", False),
        ('FATAL:  permission denied for database "fw"', "GRANT CONNECT", False),
        (
            'server certificate for "db.test" (and 1 other name) does not match host name "h"',
            "not for h",
            False,
        ),
        ('root certificate file "r.pem" does not exist\nEither', "no file r.pem", False),
        ("SSL error: certificate verify failed", "not signed by", False),
        ("SSL error: unexpected eof", "TLS could not begin", False),
        ("server does not support SSL, but SSL was required", "has no TLS", False),
        ("Connection refused\n\tIs the server running", "at 10.0.0.9 port 5432; check", True),
        ("connection timeout expired", "cannot be reached", True),
        ("server closed the connection unexpectedly", "cannot be reached", True),
        ("FATAL:  the database system is starting up", "once it is up", True),
        ("FATAL:  sorry, too many clients already", "max_connections", True),
        ("FATAL:  remaining connection slots are reserved", "max_connections", True),
        ("FATAL:  no more connections allowed (max_client_conn)", "max_connections", True),
        ("server is in hot standby mode", "no host of the store's URL is the primary", True),
        ("session is read-only", "no host of the store's URL is the primary", True),
        ("received invalid response to SSL negotiation: H", "something else", False),
        ('invalid sslmode value: "bla"', "sslmode=bla", False),
        ("FATAL:  Passwort-Authentifizierung fehlgeschlagen", "it says: ", True),
        ("", "cannot work with PostgreSQL: it says", True),
    ],
)
def test_a_text_says_what_to_do(text: str, advice: str, is_temporary: bool) -> None:
    found = explained(psycopg.OperationalError(AT + text))
    assert advice in str(found)
    assert "\n" not in str(found)
    assert isinstance(found, StoreUnusable) is not is_temporary


def test_the_most_telling_of_several_hosts_counts() -> None:
    texts = [AT + "Connection refused", AT + 'FATAL:  password authentication failed for user "x"']
    error = psycopg.OperationalError("\n- host: ".join(["Multiple attempts failed:", *texts]))
    assert "this user with this password" in diagnose(error).message


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://fw:pa@ss@word@h/d",
        "postgresql://fw:pass@host:no/d",
        "postgresql://fw:pass@host/d?foo=1",
        "postgresql://fw:pa:ss/word@h/d",
    ],
)
async def test_no_part_of_a_url_that_is_wrong_is_shown(url: str) -> None:
    with pytest.raises(StoreDown) as found:
        await PostgresStore(url).open()
    assert "ss" not in str(found.value).replace("password", "").replace("address", "")


def test_a_key_that_is_no_known_one_is_an_error() -> None:
    assert "SQLSTATE 23505" in str(explained(psycopg.errors.UniqueViolation("no")))


async def test_the_errors_of_a_real_server(postgres_server: PostgresServer) -> None:
    """Those that need a password or TLS are tried by `./test postgres`."""
    good = postgres_server.dsn()
    for dsn, advice in {
        postgres_server.dsn("nowhere"): "no database nowhere",
        good.replace("user=postgres", "user=joe"): "no user joe",
        good + " port=1": "cannot be reached",
        "host=127.0.0.1 port=1": "at 127.0.0.1 port 1",
        "host=no-such-host.invalid": "host name no-such-host.invalid is not known",
        good + " target_session_attrs=standby": "is the primary",
        good + " sslmode=require host=127.0.0.1 port=99999": "port",
    }.items():
        with pytest.raises(StoreDown, match=advice) as found:
            await PostgresStore(dsn).open()
        assert "\n" not in str(found.value)
