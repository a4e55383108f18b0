"""Drivers really freeze, reboot, redeploy, stop or delete an instance."""

from fairwarning.core.driver_settings import DriverCatalogue
from fairwarning.drivers import command, simulated, webhook

DRIVER_CATALOGUE: DriverCatalogue = {
    each.driver: each for each in (simulated.SETTINGS, command.SETTINGS, webhook.SETTINGS)
}
"""The settings of every driver, so that a fleet file can be checked against them."""
