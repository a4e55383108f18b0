"""This module looks at the URL of a store, without loading the code of any store."""

import re
from urllib.parse import urlsplit


def is_postgres(url: str) -> bool:
    """Return whether this is a URL of PostgreSQL, or words such as `host=a,b dbname=fw`."""
    return re.match(r"postgres(ql)?://|\s*\w+\s*=", url) is not None


def has_password(url: str) -> bool:
    try:
        return bool(urlsplit(url).password) or "password=" in url.replace(" ", "")
    except ValueError:
        return False
