"""Resource groups."""

from fairwarning.control.arm.call import Routes

ROUTES: Routes = {}
