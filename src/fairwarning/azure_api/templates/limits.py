"""How large a template may become. Counts are Azure's; the work is bounded for our own sake."""

from fairwarning.azure_api.templates.errors import Fault

RESOURCES_MAX = 800
COPIES_MAX = 800
PARAMETERS_MAX = 256
VARIABLES_MAX = 512
OUTPUTS_MAX = 64
EXPRESSION_LENGTH_MAX = 24_576
TEXT_LENGTH_MAX = 1024 * 1024
"""Of any text that an expression makes."""
NESTING_MAX = 32
"""Of calls in one expression."""
DEPTH_MAX = 100
"""Of values, and of expressions that lead to others through variables and parameters."""
WORK_MAX = 1_000_000
"""About one for each value that is looked at."""
SMALL_WORK = 20_000
"""What a template may cost in our own process, where polls wait for it: some tens of ms."""
_CHARACTERS_A_UNIT = 64


def copies_of(count: object) -> int:
    """How often a copy loop runs. Raises Fault."""
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= COPIES_MAX:
        raise Fault(f"the count of a copy loop must be an int between 0 and {COPIES_MAX}")
    return count


class Budget:
    """The work that one deployment may still cause, and how deep it is in it just now."""

    def __init__(self, work: int = WORK_MAX) -> None:
        self._left = work
        self._resources = RESOURCES_MAX
        self._depth = 0

    @property
    def is_spent(self) -> bool:
        """Somebody wanted more than there was."""
        return self._left < 0

    def spend(self, units: int = 1) -> None:
        self._left -= units
        if self._left < 0:
            raise Fault("the template takes too much work; divide it into smaller ones")

    def count_resource(self) -> None:
        self._resources -= 1
        if self._resources < 0:
            raise Fault(f"a deployment has at most {RESOURCES_MAX} resources, copies included")

    def measure(self, value: object) -> None:
        """Spends what looking at the whole of a value costs; refuses one that is too deep."""
        depth, level = 0, [value]
        while level:
            depth += 1
            if depth > DEPTH_MAX:
                raise Fault(f"a value is nested more than {DEPTH_MAX} levels deep")
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
        """One level deeper."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            self._depth -= 1
            raise Fault(f"expressions lead to others more than {DEPTH_MAX} levels deep")

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
