"""The fleet file: what a person wrote, read, compared with the fleet, and made so."""

from fairwarning.fleetfile.model import Fleet, FleetChange, Plan, Step
from fairwarning.fleetfile.plan import exists, plan, refuse_plan, removal
from fairwarning.fleetfile.problems import FleetProblem
from fairwarning.fleetfile.reader import read_json, read_toml

__all__ = [
    "Fleet",
    "FleetChange",
    "FleetProblem",
    "Plan",
    "Step",
    "exists",
    "plan",
    "read_json",
    "read_toml",
    "refuse_plan",
    "removal",
]
