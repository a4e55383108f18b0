"""Subscriptions, tenants, locations and providers."""

from fairwarning.control.arm.call import Routes

ROUTES: Routes = {}
