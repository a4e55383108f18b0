"""Limits templates: the counts are Azure's, and the work is limited to protect the server."""

from fairwarning.azure_api.templates.errors import TemplateError

RESOURCES_MAX = 800
COPIES_MAX = 800
PARAMETERS_MAX = 256
VARIABLES_MAX = 512
OUTPUTS_MAX = 64
EXPRESSION_LENGTH_MAX = 24_576
TEXT_LENGTH_MAX = 1024 * 1024
"""The longest text that an expression may make."""
NESTING_MAX = 32
"""How deep calls may be nested in one expression."""
DEPTH_MAX = 100
"""How deep values may be nested, and expressions that refer to others by name."""
WORK_MAX = 1_000_000
"""The units of work of one deployment: about one for each value that is read."""
SMALL_WORK = 20_000
"""The work that a template may cause in this process, where polls wait: some tens of ms."""
_CHARACTERS_A_UNIT = 64


def copies_of(count: object) -> int:
    """Returns the number of rounds of a copy loop. Raises TemplateError."""
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= COPIES_MAX:
        raise TemplateError(f"the count of a copy loop must be an int between 0 and {COPIES_MAX}")
    return count


class Budget:
    """The work that one deployment may still cause, and the present depth of nesting."""

    def __init__(self, work: int = WORK_MAX) -> None:
        self._left = work
        self._resources = RESOURCES_MAX
        self._depth = 0

    @property
    def is_spent(self) -> bool:
        """True once more work was wanted than was left."""
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
        """Spends the cost of reading a whole value; refuses a value that is nested too deep."""
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
        """Goes one level deeper."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            self._depth -= 1
            raise TemplateError(f"expressions lead to others more than {DEPTH_MAX} levels deep")

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
