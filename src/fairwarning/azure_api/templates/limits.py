"""Defines the limits of templates.

The limits of counts are Azure's. The limit of work protects this server.
"""

from fairwarning.azure_api.templates.errors import TemplateError

RESOURCES_MAX = 800
COPIES_MAX = 800
PARAMETERS_MAX = 256
VARIABLES_MAX = 512
OUTPUTS_MAX = 64
EXPRESSION_LENGTH_MAX = 24_576
TEXT_LENGTH_MAX = 1024 * 1024
"""The maximum length of a text that an expression returns."""
NESTING_MAX = 32
"""The maximum depth of nested calls in one expression."""
DEPTH_MAX = 100
"""The maximum depth of nested values, and of expressions that refer to others by name."""
WORK_MAX = 1_000_000
"""The maximum work of one deployment. One unit is about the work to read one value."""
SMALL_WORK = 20_000
"""The maximum work of a template in this process, where other requests wait meanwhile."""
_CHARACTERS_A_UNIT = 64


def copies_of(count: object) -> int:
    """Returns `count` if it is valid as the count of a copy loop. Else raises TemplateError."""
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= COPIES_MAX:
        raise TemplateError(f"the count of a copy loop must be an int between 0 and {COPIES_MAX}")
    return count


class Budget:
    """Counts the work and the resources that one deployment has left, and the depth of nesting."""

    def __init__(self, work: int = WORK_MAX) -> None:
        self._left = work
        self._resources = RESOURCES_MAX
        self._depth = 0

    @property
    def is_spent(self) -> bool:
        """True once the work of the deployment has exceeded its limit."""
        return self._left < 0

    def spend(self, units: int = 1) -> None:
        self._left -= units
        if self._left < 0:
            raise TemplateError("the template takes too much work; divide it into smaller ones")

    def count_resource(self) -> None:
        self._resources -= 1
        if self._resources < 0:
            raise TemplateError(
                f"a deployment has at most {RESOURCES_MAX} resources, copies included"
            )

    def measure(self, value: object) -> None:
        """Spends the cost of reading a whole value.

        Raises TemplateError if it is nested too deeply.
        """
        depth, level = 0, [value]
        while level:
            depth += 1
            if depth > DEPTH_MAX:
                raise TemplateError(f"a value is nested more than {DEPTH_MAX} levels deep")
            below: list[object] = []
            for each in level:
                if isinstance(each, dict):
                    self.spend(1 + len(each))
                    below += each.values()
                elif isinstance(each, list):
                    self.spend(1 + len(each))
                    below += each
                elif isinstance(each, str):
                    self.spend(1 + len(each) // _CHARACTERS_A_UNIT)
                else:
                    self.spend()
            level = below

    def __enter__(self) -> None:
        """Goes one level deeper. Raises TemplateError if this is too deep."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            self._depth -= 1
            raise TemplateError(f"expressions lead to others more than {DEPTH_MAX} levels deep")

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
