"""The part of Azure Resource Manager (ARM) that az and the Azure SDKs need for fleets."""
