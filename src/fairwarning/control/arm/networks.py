"""Networks, interfaces and addresses, kept as their owners wrote them."""

from fairwarning.control.arm.call import Routes

ROUTES: Routes = {}
