"""Instances of scale sets."""

from fairwarning.control.arm.call import Routes

ROUTES: Routes = {}
