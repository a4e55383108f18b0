"""One-line patches, each of which breaks a promise. The simulation must notice every one."""

from tests.simulation.mutations import around_core, core
from tests.simulation.mutations.mutation import Mutation

__all__ = ["MUTATIONS", "Mutation"]

MUTATIONS = [*core.MUTATIONS, *around_core.MUTATIONS]
