"""This package reads a fleet file, compares it with the fleet, and applies it."""

from fairwarning.fleet_file.model import Fleet, FleetChange, Plan, Step
from fairwarning.fleet_file.plan import (
    confirmation,
    exists,
    plan,
    refuse_existing,
    refuse_plan,
    removal,
    resource_key,
)
from fairwarning.fleet_file.problems import FleetProblem, TooManyInstances
from fairwarning.fleet_file.read import read_json, read_toml

__all__ = [
    "TooManyInstances",
    "Fleet",
    "FleetChange",
    "FleetProblem",
    "Plan",
    "Step",
    "confirmation",
    "exists",
    "plan",
    "read_json",
    "read_toml",
    "refuse_existing",
    "refuse_plan",
    "removal",
    "resource_key",
]
