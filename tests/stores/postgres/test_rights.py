"""A user of PostgreSQL that may not create tables: it works once they are there."""

from collections.abc import Iterator

import pytest

from fairwarning.engine.protocols import StoreUnusable
from fairwarning.stores.postgres import PostgresStore
from tests.stores.fleet import ME, declare, web
from tests.stores.nodes import wait_for
from tests.stores.steps import changing
from tests.support.postgres import PostgresServer

GRANTS = (
    "GRANT USAGE ON SCHEMA public TO worker",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO worker",
)
"""What docs/postgresql.md says."""


@pytest.fixture
def worker(postgres_server: PostgresServer) -> Iterator[None]:
    postgres_server.execute("CREATE ROLE worker LOGIN")
    yield
    postgres_server.execute("DROP OWNED BY worker CASCADE")
    postgres_server.execute("DROP ROLE worker")


def as_worker(dsn: str) -> str:
    return dsn.replace("user=postgres", "user=worker")


@pytest.mark.usefixtures("worker")
async def test_an_empty_database_needs_its_owner_first(bare_postgres_dsn: str) -> None:
    with pytest.raises(StoreUnusable, match=r"schema public.*owner of the database create them"):
        await PostgresStore(as_worker(bare_postgres_dsn)).open()


@pytest.mark.usefixtures("worker")
async def test_rights_on_the_tables_are_enough(
    postgres_dsn: str, postgres_server: PostgresServer
) -> None:
    name = postgres_dsn.rpartition("=")[2]
    store = PostgresStore(as_worker(postgres_dsn))
    with pytest.raises(StoreUnusable, match="permission denied for table schema_version"):
        await store.open()
    for grant in GRANTS:
        postgres_server.execute(grant, name)
    await store.open()
    id = await declare(store, web())
    assert (await store.transact(id, changing, by=ME)).scope.revision == 3
    await store.keep("token", "t", "{}", by=ME)
    assert await store.drop("token", "t", by=ME)
    await wait_for(lambda: store.condition.hears_signals)
    postgres_server.execute("REVOKE UPDATE ON scopes FROM worker", name)
    with pytest.raises(StoreUnusable, match=r"permission denied for table scopes.*grant it"):
        await store.transact(id, changing, by=ME)
    await store.close()
    for grant in GRANTS:
        postgres_server.execute(grant.replace("GRANT", "REVOKE").replace(" TO ", " FROM "), name)
