"""Scheduled events in ARM: listed and approved."""

from fairwarning.control.arm.call import Routes

ROUTES: Routes = {}
