"""Every route of ARM, from the modules that answer them."""

from fairwarning.control.arm import (
    availability_sets,
    deployments,
    groups,
    images,
    machines,
    maintenance,
    networks,
    progress,
    providers,
    scale_set_instances,
    scale_sets,
    subscriptions,
)
from fairwarning.control.arm.call import Routes

TABLES: tuple[Routes, ...] = (
    subscriptions.ROUTES,
    providers.ROUTES,
    groups.ROUTES,
    networks.ROUTES,
    images.ROUTES,
    machines.ROUTES,
    availability_sets.ROUTES,
    scale_sets.ROUTES,
    scale_set_instances.ROUTES,
    deployments.ROUTES,
    maintenance.ROUTES,
    progress.ROUTES,
)
