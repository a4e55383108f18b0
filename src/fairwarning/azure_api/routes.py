"""Collects the routes of all modules that have ARM handlers."""

from fairwarning.azure_api import (
    autoscale,
    availability_sets,
    catalogue,
    groups,
    locks,
    maintenance,
    operation_status,
    providers,
    role_assignments,
    scheduled_events,
    subscriptions,
    tags,
)
from fairwarning.azure_api.deployments import handlers as deployments
from fairwarning.azure_api.networks import handlers as networks
from fairwarning.azure_api.request import Routes
from fairwarning.azure_api.scale_sets import handlers as scale_sets
from fairwarning.azure_api.scale_sets import instances
from fairwarning.azure_api.virtual_machines import handlers as virtual_machines

TABLES: tuple[Routes, ...] = (
    subscriptions.ROUTES,
    providers.ROUTES,
    groups.ROUTES,
    networks.ROUTES,
    catalogue.ROUTES,
    virtual_machines.ROUTES,
    availability_sets.ROUTES,
    scale_sets.ROUTES,
    instances.ROUTES,
    deployments.ROUTES,
    scheduled_events.ROUTES,
    operation_status.ROUTES,
    locks.ROUTES,
    tags.ROUTES,
    maintenance.ROUTES,
    autoscale.ROUTES,
    role_assignments.ROUTES,
)
