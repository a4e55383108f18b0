"""The time limit of a wait in a test.

No test fails because the machine is busy, so a limit is there only to end a hang, and is longer
than anything takes. Tried with twenty busy processes on two cores, where a test that takes ten
seconds on a quiet machine takes two minutes.
"""

HANG_S = 600.0
"""Half of the limit for a whole test (`--timeout` in pyproject.toml), so that a wait says
what did not come before the whole test is ended without a word."""
