"""Virtual machines in Azure Resource Manager."""
