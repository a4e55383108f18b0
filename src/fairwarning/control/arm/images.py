"""Images and sizes, as far as az asks for them before it creates something."""

from fairwarning.control.arm.call import Routes

ROUTES: Routes = {}
