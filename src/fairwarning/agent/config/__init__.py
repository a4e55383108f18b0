"""One TOML file to a Config, and each mistake in it with its line and what to do."""

from fairwarning.agent.config.reader import read_config, read_file
from fairwarning.agent.config.table import BadConfig, Mistake

__all__ = ["BadConfig", "Mistake", "read_config", "read_file"]
