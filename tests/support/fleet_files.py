"""Fleets are read with the drivers that the program has."""

from functools import partial

from fairwarning.drivers import plugins
from fairwarning.fleet_file import read

read_toml = partial(read.read_toml, drivers=plugins.catalogue())
read_json = partial(read.read_json, drivers=plugins.catalogue())
