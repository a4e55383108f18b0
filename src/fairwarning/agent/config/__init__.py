"""The agent's config: its values, and the reader of its TOML file."""
