"""Says in one line what an error of PostgreSQL means, what to do, and whether waiting helps.

An error inside a session has an SQLSTATE, which is the same in every language. An error while
connecting has only a text, so that is searched for what PostgreSQL, libpq and PgBouncer write. A
text that is not known, such as one in another language, is passed on. No text of a URL that
cannot be parsed is passed on, because a password may be in it.
"""

import re
from typing import NamedTuple

import psycopg

from fairwarning import __version__
from fairwarning.core.refusals import Refused
from fairwarning.engine.protocols import SchemaTooNew, StoreDown, StoreUnusable
from fairwarning.stores.statements import refuse_taken

TEXT_CHARACTERS_MAX = 300
"""How much is passed on of a text that is not known."""


class Diagnosis(NamedTuple):
    message: str
    """What is wrong and what to do, in one line. It holds no secret."""
    is_temporary: bool
    """Whether the same attempt may succeed later, although nobody changes a setting."""


class _Sign(NamedTuple):
    pattern: re.Pattern[str]
    advice: str
    """What to do. The named groups of the pattern may be used in it."""
    is_temporary: bool = False


def _sign(pattern: str, advice: str, *, is_temporary: bool = False) -> _Sign:
    return _Sign(re.compile(pattern), advice, is_temporary)


_SIGNS = (
    _sign(
        r"certificate for .* does not match host name \"(?P<host>[^\"]*)\"",
        "its certificate is not for {host}, perhaps another host answers; name the host as its "
        "certificate does, or issue one for this name",
    ),
    _sign(
        r"root certificate file \"(?P<file>[^\"]*)\" does not exist",
        "there is no file {file} of certificate authorities; name the right one by sslrootcert, "
        "or say sslrootcert=system",
    ),
    _sign(
        r"certificate verify failed|could not (load|read) root certificate",
        "its certificate is not signed by an authority that sslrootcert names; name the right "
        "file by sslrootcert, or renew the certificate",
    ),
    _sign(
        r"server does not support SSL",
        "the server has no TLS, and the URL's sslmode demands it; switch ssl on at the server, "
        "or choose another sslmode",
    ),
    _sign(
        r"SSL error: (?P<text>.*)|could not (load|read) (client )?(certificate|private key)",
        "TLS could not begin; check sslmode, sslrootcert, sslcert and sslkey of the URL, and the "
        "server's ssl settings",
    ),
    _sign(
        r"no password supplied|empty password",
        "it wants a password and got none; give one by PGPASSFILE, PGPASSWORD or passfile=, or "
        "in the file of --store-file",
    ),
    _sign(
        r"(password|SASL) authentication failed|server login failed|wrong password type"
        r"|(Ident|Peer|certificate) authentication failed",
        "it refuses this user with this password; check both (a user that does not exist is "
        "refused the same way)",
    ),
    _sign(
        r"no pg_hba\.conf entry for .*no encryption",
        "it wants TLS, or has no rule for this host, user and database; say sslmode=require in "
        "the URL, or add a line to its pg_hba.conf",
    ),
    _sign(
        r"no pg_hba\.conf entry|pg_hba\.conf rejects",
        "it lets nobody in from this host with this user and database; change its pg_hba.conf",
    ),
    _sign(
        r"role \"(?P<role>[^\"]*)\" does not exist",
        "it has no user {role}; CREATE ROLE {role} LOGIN, or name another user in the store's URL",
    ),
    _sign(
        r"no such user",
        "the pooler does not know the user; add it to its auth_file, or set its auth_query",
    ),
    _sign(
        r"role \"(?P<role>[^\"]*)\" is not permitted to log in",
        "the user {role} may not log in; ALTER ROLE {role} LOGIN",
    ),
    _sign(
        r"database \"(?P<database>[^\"]*)\" does not exist",
        "it has no database {database}; CREATE DATABASE {database}, or name another one in the "
        "store's URL",
    ),
    _sign(
        r"no such database",
        "the pooler does not know the database; add it to its [databases]",
    ),
    _sign(
        r"permission denied for database \"(?P<database>[^\"]*)\"",
        "the user may not connect to the database {database}; GRANT CONNECT ON DATABASE "
        "{database} to it",
    ),
    _sign(
        r"too many (clients|connections)|remaining connection slots|no more connections allowed",
        "it has no free connection; raise its max_connections (or the pooler's, or the user's "
        "limit), or run fewer nodes",
        is_temporary=True,
    ),
    _sign(
        r"starting up|shutting down|in recovery mode|not yet accepting connections",
        "it is shutting down or starting; it goes on by itself once it is up",
        is_temporary=True,
    ),
    _sign(
        r"in hot standby mode|session is (not )?read-|is not accepting (read-write )?",
        "no host of the store's URL is the primary; promote one, or name the primary too",
        is_temporary=True,
    ),
    _sign(
        r"Servname not supported|invalid port|invalid integer value",
        "its port is no number from 1 to 65535; correct the store's URL",
    ),
    _sign(
        r"failed to resolve host '(?P<host>[\w.:-]+)'",
        "the host name {host} is not known; correct it in the store's URL, or in the DNS",
        is_temporary=True,
    ),
    _sign(
        r"invalid (?P<name>\w+) value: \"(?P<value>[\w-]*)\"",
        "the store's URL has {name}={value}, which does not exist; correct it",
    ),
    _sign(
        r"invalid response to SSL negotiation|unsupported frontend protocol|"
        r"expected authentication request",
        "something else than PostgreSQL answers there; check host and port of the store's URL",
    ),
    _sign(
        r"Permission denied",
        "this user of the machine may not open its socket; check the rights of its folder",
    ),
    _sign(
        r"refused|timeout|timed out|No route|unreachable|No such file|reset by peer|"
        r"closed the connection|cannot connect to server|server_login_retry|failed to resolve",
        "it cannot be reached{place}; check that it runs, that host and port of the store's URL "
        "are right, and that no firewall is between",
        is_temporary=True,
    ),
)
"""What the text of an error may contain. Several may fit, and the first one says most."""

_PLACE = re.compile(r"server at \"(?P<host>[\w.:-]+)\"(?: \([^)]*\))?, port (?P<port>\d+)")
_ADVICE = {
    "08": "it cannot be reached, or broke off; check that it runs, and that host, database and "
    "user of the store's URL are right",
    "25006": "it is read-only, perhaps a standby; name the primary in the store's URL",
    "28": "it refuses this user; check user and password of the store's URL, and its pg_hba.conf",
    "3D": "it has no database of this name; CREATE DATABASE, or name another one in the URL",
    "40": "it undid the transaction in favour of another; ask again",
    "42501": "the user may not do this ({text}); grant it the tables of its database, or let the "
    "owner of the database create them",
    "53100": "its disk is full; free some space, and it goes on by itself",
    "53300": "it has no free connection; raise its max_connections (or the pooler's, or the user's "
    "limit), or run fewer nodes",
    "53": "it is out of memory or connections; give it more, or use fewer",
    "55P03": "a lock was not free in time; ask again, and look for long transactions",
    "57014": "a statement took too long; ask again, and look for long transactions",
    "57P": "it is shutting down or starting; it goes on by itself once it is up",
    "XX": "its files are damaged; restore a backup",
}
_PERMANENT = ("28", "3D", "42", "XX")
"""The classes of SQLSTATE that stay as they are until somebody changes something."""
TOO_NEW = "ZF001"
"""The SQLSTATE of `check_writer`. No error of PostgreSQL itself has it."""
STANDBY_STATES = frozenset({"25006", "0A000"})
"""What a server answers to a write if it is no primary. The second one is for BEGIN READ WRITE."""


def diagnose(error: psycopg.Error) -> Diagnosis:
    """Says what the error means. It is pure, so it can be asked about any error."""
    if isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None:
        return Diagnosis(
            "its URL cannot be understood; write one like postgresql://user@host/database", False
        )
    if error.sqlstate is None:
        return _diagnosis_of_text(str(error))
    return _diagnosis_of_state(error.sqlstate, error.diag.message_primary or "")


def explained(error: psycopg.Error, *, where: str = "PostgreSQL") -> Refused | StoreDown:
    """Returns Refused if a unique key is taken, SchemaTooNew if this node may no longer write,
    StoreUnusable if somebody must change a setting, and StoreDown for any other error. Their
    messages say what to do, and name the server `where`.
    """
    if error.sqlstate == TOO_NEW:
        return SchemaTooNew(
            "a newer version of fairwarning has migrated the database: "
            f"{error.diag.message_primary}, and this is fairwarning {__version__}; upgrade it"
        )
    if isinstance(error, psycopg.errors.UniqueViolation):
        # The message is in the server's language, but the key is always written (column)=(value).
        found = _KEY.search(error.diag.message_detail or "")
        try:
            refuse_taken(_ADDS.get(error.diag.constraint_name or "", ""), found[1] if found else "")
        except Refused as refusal:
            return refusal
    message, is_temporary = diagnose(error)
    kind = StoreDown if is_temporary else StoreUnusable
    return kind(f"cannot work with {where}: {message}")


_ADDS = {"scopes_pkey": "add_scope", "addresses_pkey": "add_address", "events_pkey": "add_event"}
_KEY = re.compile(r"=\((.*)\)", re.DOTALL)


def _diagnosis_of_text(text: str) -> Diagnosis:
    place = _PLACE.search(text)
    shown_place = f" at {place['host']} port {place['port']}" if place else ""
    for sign in _SIGNS:
        if found := sign.pattern.search(text):
            message = sign.advice.format(place=shown_place, **found.groupdict())
            return Diagnosis(message, sign.is_temporary)
    said = " ".join(text.split())[:TEXT_CHARACTERS_MAX]
    hint = f"it says: {said}" if said else "it broke off"
    return Diagnosis(f"{hint}; check that it runs, and that the store's URL is right", True)


def _diagnosis_of_state(state: str, text: str) -> Diagnosis:
    is_temporary = not state.startswith(_PERMANENT)
    if state == "0A000" and "recovery" in text:
        state = "25006"
    for length in (5, 3, 2):
        if state[:length] in _ADVICE:
            return Diagnosis(_ADVICE[state[:length]].format(text=text), is_temporary)
    return Diagnosis(f"it refused a statement with SQLSTATE {state}: {text}", is_temporary)
