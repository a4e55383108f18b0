"""The live screen of `fairwarning watch`."""
