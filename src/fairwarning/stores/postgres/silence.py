"""Sets how long a connection to PostgreSQL may be silent before the kernel gives it up.

A server that is switched off, or a network that drops packets, sends no error. So the kernel asks
the other machine from time to time, and ends the connection if it does not answer. A server that
works on a long statement is not given up, because its machine answers.
"""

from math import ceil

from psycopg.conninfo import conninfo_to_dict, make_conninfo


def limit_silence(dsn: str, silent_s: float) -> str:
    """Returns the DSN with this limit, unless it sets limits itself. Raises
    psycopg.ProgrammingError if it is no DSN.
    """
    limits = {
        # libpq would make two seconds of one.
        "connect_timeout": str(max(2, ceil(silent_s))),
        "tcp_user_timeout": str(ceil(silent_s * 1000)),
        "keepalives_idle": "1",
        "keepalives_interval": "1",
        # `tcp_user_timeout` ends the connection before. Where it does not exist, this does.
        "keepalives_count": str(max(1, ceil(silent_s) - 1)),
    }
    return make_conninfo("", **{**limits, **conninfo_to_dict(dsn)})
