"""The cases that a handler is checked with, by subject. `all_cases.py` lists them."""
