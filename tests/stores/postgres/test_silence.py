"""The kernel gives up a connection on which the other machine is silent."""

import os
import socket

import pytest
from psycopg.conninfo import conninfo_to_dict

from fairwarning.stores.postgres.database import connect, conninfo_of
from fairwarning.stores.postgres.silence import limit_silence
from tests.support.tcp_proxy import proxied


@pytest.mark.parametrize(("silent_s", "connect_s"), [(1.0, "2"), (2.5, "3"), (60.0, "60")])
def test_all_waits_for_a_silent_machine_have_the_same_limit(
    silent_s: float, connect_s: str
) -> None:
    found = conninfo_to_dict(conninfo_of(limit_silence("host=h", silent_s)))
    assert found["connect_timeout"] == connect_s
    assert found["tcp_user_timeout"] == str(int(silent_s * 1000))


def test_limits_of_the_url_take_precedence() -> None:
    found = conninfo_to_dict(limit_silence("host=h connect_timeout=9 keepalives_idle=7", 3.0))
    assert (found["connect_timeout"], found["keepalives_idle"]) == ("9", "7")
    assert found["tcp_user_timeout"] == "3000"


async def test_the_socket_has_the_limit(postgres_dsn: str) -> None:
    async with proxied(postgres_dsn) as (_, url):
        conninfo = conninfo_of(limit_silence(url, 3.0))
        async with await connect(conninfo, "limit_session") as connection:
            with socket.socket(fileno=os.dup(connection.fileno())) as own:
                tcp = socket.IPPROTO_TCP
                assert own.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
                assert own.getsockopt(tcp, socket.TCP_USER_TIMEOUT) == 3_000
                assert own.getsockopt(tcp, socket.TCP_KEEPIDLE) == 1
                assert own.getsockopt(tcp, socket.TCP_KEEPINTVL) == 1
