"""Deployments of templates."""

from fairwarning.control.arm.call import Routes

ROUTES: Routes = {}
