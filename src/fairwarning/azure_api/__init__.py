"""Azure Resource Manager, as far as fleets go: what az and the Azure SDKs talk to."""
