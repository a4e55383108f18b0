"""Scale sets in Azure Resource Manager."""
