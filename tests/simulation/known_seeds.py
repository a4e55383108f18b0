"""`python -m tests.simulation.known_seeds`: finds the seeds that show each mutation soonest.

It writes them into the files of `mutations/`, so that the test of the mutations stays quick.
"""

import re
import sys
from pathlib import Path

from tests.simulation.mutations import MUTATIONS
from tests.simulation.test_mutations import Forge

MUTATIONS_FOLDER = Path(__file__).with_name("mutations")


def main(chosen: list[str]) -> None:
    forge = Forge(seeds=3_000)
    for mutation in MUTATIONS:
        if chosen and not any(part in mutation.name for part in chosen):
            continue
        report = forge.try_out(mutation)
        told = str(report["broken"])
        is_right = bool(told) and mutation.promise in told
        print(
            f"{'  ' if is_right else '!!'} {mutation.name}: {report['seed']} {told[:160]}",
            flush=True,
        )
        if is_right:
            _write_seed(mutation.name, int(report["seed"]))
    forge.close()


def _write_seed(name: str, seed: int) -> None:
    for file in MUTATIONS_FOLDER.glob("*.py"):
        text = file.read_text()
        if f'        "{name}",\n' in text:
            file.write_text(_with_seed(text, name, seed))


def _with_seed(text: str, name: str, seed: int) -> str:
    begin = text.index(f'        "{name}",\n')
    end = text.index("\n    ),\n", begin)
    one = re.sub(r"\n        seeds=\([^)]*\),", "", text[begin:end])
    return text[:begin] + one + f"\n        seeds=({seed},)," + text[end:]


if __name__ == "__main__":
    main(sys.argv[1:])
