"""Networks in Azure Resource Manager."""
