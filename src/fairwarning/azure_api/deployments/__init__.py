"""Deployments of templates in Azure Resource Manager."""
