"""Every driver's declaration of its settings, for whatever reads fleets."""

from fairwarning.core.driver_settings import DriverCatalogue
from fairwarning.drivers import command, simulated, webhook

DRIVER_CATALOGUE: DriverCatalogue = {
    each.driver: each for each in (simulated.SETTINGS, command.SETTINGS, webhook.SETTINGS)
}
