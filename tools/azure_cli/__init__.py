"""Azure's own command line, `az`, run against a fresh server of ours."""
