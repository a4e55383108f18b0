"""The kinds of actions. Each kind has a module, and `registry.py` lists them all."""
