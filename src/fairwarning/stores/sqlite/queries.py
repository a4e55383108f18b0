"""The statements of this dialect."""

from fairwarning.stores.queries import load_queries

QUERIES = load_queries("sqlite")
