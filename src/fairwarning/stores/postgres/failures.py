"""What PostgreSQL's errors mean: a key that is taken is a refusal, all else an outage."""

import re

import psycopg

from fairwarning.core.refusals import Refused
from fairwarning.engine.protocols import StoreDown
from fairwarning.stores.statements import refuse_taken

_ADDS = {"scopes_pkey": "add_scope", "addresses_pkey": "add_address", "events_pkey": "add_event"}
_KEY = re.compile(r"=\((.*)\)", re.DOTALL)

_ADVICE = {
    "08": "it cannot be reached, or broke off; check that it runs, and that host, database and "
    "user of the store's URL are right",
    "25006": "it is read-only, perhaps a standby; name the primary in the store's URL",
    "40": "it undid the transaction in favour of another; ask again",
    "42501": "the user may not do this; grant it the tables of its database",
    "53100": "its disk is full; free some space, and it goes on by itself",
    "53": "it is out of memory or connections; give it more, or use fewer",
    "55P03": "a lock was not free in time; ask again, and look for long transactions",
    "57014": "a statement took too long; ask again, and look for long transactions",
    "57P": "it is shutting down or starting; it goes on by itself once it is up",
    "XX": "its files are damaged; restore a backup",
}


def explained(error: psycopg.Error) -> Refused | StoreDown:
    if isinstance(error, psycopg.errors.UniqueViolation):
        # The server names the key in words of its language, but always as (column)=(value).
        found = _KEY.search(error.diag.message_detail or "")
        try:
            refuse_taken(_ADDS.get(error.diag.constraint_name or "", ""), found[1] if found else "")
        except Refused as refusal:
            return refusal
    return StoreDown(f"cannot work with PostgreSQL: {_advice(error)}")


def _advice(error: psycopg.Error) -> str:
    if isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None:
        return "its URL cannot be understood; write one like postgresql://user@host/database"
    # What goes wrong before there is a session has no SQLSTATE.
    state = error.sqlstate or "08"
    for length in (5, 3, 2):
        if state[:length] in _ADVICE:
            return _ADVICE[state[:length]]
    return f"it refused a statement with SQLSTATE {state}: {error.diag.message_primary}"
