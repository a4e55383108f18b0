"""What the URL of a store is."""

import pytest

from fairwarning.common.store_urls import has_password, is_postgres


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://fw:hidden@db/fw", True),
        ("postgresql://fw:p@a:1,b:2/fw", True),
        ("postgresql://fw@db/fw?password=p", True),
        ("host=a dbname=fw password = p", True),
        ("postgresql://fw@db/fw?passfile=/srv/pass", False),
        ("postgresql://[::/fw", False),
        ("sqlite:///fw.db", False),
    ],
)
def test_a_password_is_found(url: str, expected: bool) -> None:
    assert has_password(url) is expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://db/fw", True),
        ("postgres://db/fw", True),
        ("host=a,b dbname=fw", True),
        (" dbname = fw", True),
        ("postgresql:db", False),
        ("sqlite:///a=b.db", False),
        ("memory:", False),
        ("", False),
    ],
)
def test_a_url_of_postgresql_is_known(url: str, expected: bool) -> None:
    assert is_postgres(url) is expected
