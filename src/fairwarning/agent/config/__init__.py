"""Reads the agent's TOML file into a Config, or reports every mistake in it with its line."""

from fairwarning.agent.config.reader import read_config, read_file
from fairwarning.agent.config.table import BadConfig

__all__ = ["BadConfig", "read_config", "read_file"]
