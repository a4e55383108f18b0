"""Runs seeds of the simulation on a program with one mistake in it, as often as it is asked to.

Each line of the input is an order in JSON; each line of the output says which seed broke what.
"""

import importlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

# Whatever the simulation needs and no mutation touches: loaded once, for all children.
for name in (
    "asyncio",
    "click",
    "email.utils",
    "httpx",
    "logging",
    "msgspec",
    "sqlite3",
    "zoneinfo",
):
    importlib.import_module(name)


class _Patched(SourceFileLoader):
    def __init__(self, name: str, path: str, old: str, new: str) -> None:
        super().__init__(name, path)
        self._old, self._new = old.encode(), new.encode()

    def get_code(self, fullname: str) -> Any:
        """Never from the cache, nor into it."""
        source = self.get_data(self.path).replace(self._old, self._new)
        return self.source_to_code(source, self.path)


class _Finder(MetaPathFinder):
    def __init__(self, module: str, path: str, old: str, new: str) -> None:
        self._module = module
        self._loader = _Patched(module, path, old, new)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return spec_from_loader(fullname, self._loader) if fullname == self._module else None


def _module_of(path: str) -> str:
    root = next(Path(each) for each in sys.path if path.startswith(f"{each}/fairwarning/"))
    return ".".join(Path(path).relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def _run(order: dict[str, Any]) -> dict[str, Any]:
    path = order["file"]
    sys.meta_path.insert(0, _Finder(_module_of(path), path, order["old"], order["new"]))
    run_seed = importlib.import_module("fairwarning.simulation.run").run_seed
    place = importlib.import_module("fairwarning.simulation.stores").StorePlace(order["store"])
    other = {"seed": -1, "broken": ""}
    for seed in order["seeds"]:
        outcome = run_seed(seed, place)
        if outcome.broken and order["promise"] in outcome.broken:
            return {"seed": seed, "broken": outcome.broken}
        if outcome.broken:
            # Another promise breaks too; the one that is meant may do so in another world.
            other = {"seed": seed, "broken": outcome.broken}
    return other


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        if os.fork() == 0:
            # A mistake may make a world run for ever; whoever waits for the report must get one.
            signal.alarm(order["limit_s"])
            try:
                report = _run(order)
            except Exception as error:  # CallerAnswer to whoever asked, and not to the next child.
                report = {"seed": -1, "broken": f"could not run: {error!r}"}
            _tell(report)
            os._exit(0)
        _, status = os.wait()
        if os.WIFSIGNALED(status):
            _tell({"seed": -1, "broken": f"a world was ended by signal {os.WTERMSIG(status)}"})


def _tell(report: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(report) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
