"""Fleets are read with the drivers that the program has."""

from functools import partial

from fairwarning import fleet_file
from fairwarning.drivers.catalogue import DRIVER_CATALOGUE

read_toml = partial(fleet_file.read_toml, drivers=DRIVER_CATALOGUE)
read_json = partial(fleet_file.read_json, drivers=DRIVER_CATALOGUE)
