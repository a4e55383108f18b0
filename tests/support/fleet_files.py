"""Fleets are read with the drivers that the program has."""

from functools import partial

from fairwarning.drivers import DRIVER_CATALOGUE
from fairwarning.fleet_file import read

read_toml = partial(read.read_toml, drivers=DRIVER_CATALOGUE)
read_json = partial(read.read_json, drivers=DRIVER_CATALOGUE)
