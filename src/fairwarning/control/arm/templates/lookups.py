"""Values by name that may depend on each other: parameters and variables.

Whether a value has a secret in it is known with the value, however many others it passed
through.
"""

from collections.abc import Callable, Mapping

from fairwarning.control.arm.templates.faults import Fault, shown
from fairwarning.control.arm.templates.functions.signature import Function, takes
from fairwarning.control.arm.templates.values import Kind, Value


class Secrecy:
    """Whether what was looked up since `seen` was last set to False had a secret in it."""

    def __init__(self) -> None:
        self.seen = False


class Lookup:
    """Each value is computed when it is first asked for."""

    def __init__(
        self,
        word: str,
        names: Mapping[str, bool],
        compute: Callable[[str], Value],
        secrecy: Secrecy,
    ) -> None:
        """`word` is `parameter` or `variable`; `names` say whether each is a secret itself."""
        self._word = word
        self._names = {name.lower(): name for name in names}
        self._secret = {name for name, is_secret in names.items() if is_secret}
        self._compute = compute
        self._secrecy = secrecy
        self._found: dict[str, tuple[Value, bool]] = {}
        self._under_way: set[str] = set()

    def functions(self) -> dict[str, Function]:
        return {f"{self._word}s": takes(self.value, Kind.TEXT)}

    def value(self, name: str) -> Value:
        known = self._names.get(name.lower())
        if known is None:
            raise Fault(f"The template {self._word} '{shown(name)}' is not found")
        if known not in self._found:
            self._found[known] = self._computed(known)
        value, is_secret = self._found[known]
        self._secrecy.seen |= is_secret
        return value

    def _computed(self, name: str) -> tuple[Value, bool]:
        if name in self._under_way:
            raise Fault(f"the {self._word} '{shown(name)}' depends on itself")
        self._under_way.add(name)
        before, self._secrecy.seen = self._secrecy.seen, name in self._secret
        value = self._compute(name)
        is_secret, self._secrecy.seen = self._secrecy.seen, before
        self._under_way.discard(name)
        return value, is_secret
