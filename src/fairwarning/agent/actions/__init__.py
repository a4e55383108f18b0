"""The kinds of actions, one module each; `registry.py` lists them all."""
